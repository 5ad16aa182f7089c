"""A program: TCP proxies on 127.0.0.1 that cut, hold back or delay their connections.

    python3 proxy.py PORT:TARGET…

It is a process of its own so that busy clients do not delay the connections. Standard input has one command per line:
the number of the proxy, `cut`, `accept`, `hold`, `release` or `delay`, and for `delay` the seconds. Standard output has
`done` after each command, and `stall SECONDS` if this process, and so probably the machine, stood still.
"""

import asyncio
import sys

CHUNK = 65536
# Seconds between two checks, and the lateness that counts as a stall.
CHECK, STALL = 0.05, 0.1


class Proxy:
    """Forwards connections to a port. Every fault affects the open connections and the new ones."""

    def __init__(self, port: int, target: int):
        self.port, self.target = port, target
        self.seconds = 0.0  # delay of each chunk, in each direction
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.writers: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None

    async def accept(self) -> None:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)

    async def cut(self) -> None:
        """Resets all connections and refuses new ones until `accept`."""
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()

    async def hold(self) -> None:
        """Forwards nothing until `release`. Nothing is lost."""
        self.flowing.clear()

    async def release(self) -> None:
        self.flowing.set()

    async def delay(self, seconds: str) -> None:
        self.seconds = float(seconds)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        onward = None
        try:
            await self.flowing.wait()
            outward, onward = await asyncio.open_connection("127.0.0.1", self.target)
            self.writers.add(onward)
            await asyncio.gather(self.forward(reader, onward), self.forward(outward, writer))
        except OSError:
            pass
        finally:
            for each in filter(None, (writer, onward)):
                self.writers.discard(each)
                each.transport.abort()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self.flowing.wait()
            if self.seconds:
                await asyncio.sleep(self.seconds)
            writer.write(data)
            await writer.drain()
        await self.flowing.wait()
        writer.write_eof()


async def report_stalls() -> None:
    loop = asyncio.get_running_loop()
    while True:
        before = loop.time()
        await asyncio.sleep(CHECK)
        if (late := loop.time() - before - CHECK) > STALL:
            print(f"stall {late:.3f}", flush=True)


async def main(pairs: list[str]) -> None:
    proxies = [Proxy(*map(int, pair.split(":"))) for pair in pairs]
    for proxy in proxies:
        await proxy.accept()
    stalls = asyncio.create_task(report_stalls())
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    print("done", flush=True)
    while line := (await commands.readline()).decode().split():
        number, command, *arguments = line
        await getattr(proxies[int(number)], command)(*arguments)
        print("done", flush=True)
    stalls.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
