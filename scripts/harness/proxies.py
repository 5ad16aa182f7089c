"""TCP proxies on 127.0.0.1 that cut, hold back or delay their connections.

They have a thread and a loop of their own, so that busy clients do not delay the connections.
"""

import asyncio
import sys
import threading
import time

from harness.servers import free_port

CHUNK = 65536
# Seconds between two checks, and the lateness that counts as a stall.
CHECK, STALL = 0.05, 0.1
# Seconds after which another thread runs.
SWITCH = 0.0005


class Proxies:
    """The thread. `stalls` are the times at which it, and so probably the machine, stood still."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.stalls: list[tuple[float, float]] = []
        sys.setswitchinterval(SWITCH)
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self.watch(), self.loop)

    async def run(self, command) -> None:
        """Runs a command of a proxy."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(command, self.loop))

    async def watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(CHECK)
            if time.monotonic() - before - CHECK > STALL:
                self.stalls.append((before + CHECK, time.monotonic()))


class Proxy:
    """Forwards connections to a port. Every command affects the open connections and the new ones."""

    def __init__(self, target: int):
        self.port, self.target = free_port(), target
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

    async def lead_to(self, target: int) -> None:
        """Resets all connections. New ones lead to another port."""
        self.target = target
        for writer in list(self.writers):
            writer.transport.abort()

    async def hold(self) -> None:
        """Forwards nothing until `release`. Nothing is lost."""
        self.flowing.clear()

    async def release(self) -> None:
        self.flowing.set()

    async def delay(self, seconds: float) -> None:
        self.seconds = seconds

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
