"""A TCP proxy on 127.0.0.1 that cuts, holds back or delays its connections."""

import asyncio

from soak.servers import free_port

CHUNK = 65536


class Proxy:
    """Forwards connections to a port. Every fault affects the open connections and the new ones."""

    def __init__(self, target: int):
        self.target, self.port = target, free_port()
        self.delay = 0.0  # seconds for each chunk, in each direction
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.writers: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)

    async def cut(self) -> None:
        """Resets all connections and refuses new ones until `start`."""
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    def hold(self) -> None:
        """Forwards nothing until `release`; nothing is lost."""
        self.flowing.clear()

    def release(self) -> None:
        self.flowing.set()

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
            for each in (writer, onward):
                if each:
                    self.writers.discard(each)
                    each.transport.abort()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self.flowing.wait()
            if self.delay:
                await asyncio.sleep(self.delay)
            writer.write(data)
            await writer.drain()
        await self.flowing.wait()
        writer.write_eof()
