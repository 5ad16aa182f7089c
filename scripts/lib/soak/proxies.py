"""The process of the proxies, and its commands."""

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from soak.servers import free_port

PROGRAM = Path(__file__).with_name("proxy.py")


class Proxies:
    """Starts the process. `stalls` has the times at which it stood still, as pairs of start and end."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.reader: asyncio.Task | None = None
        self.replies: asyncio.Queue[str] = asyncio.Queue()
        self.stalls: list[tuple[float, float]] = []
        self.lock = asyncio.Lock()

    async def start(self, targets: list[int]) -> list["Proxy"]:
        """Returns one proxy for each target port."""
        ports = [free_port() for _ in targets]
        pairs = [f"{port}:{target}" for port, target in zip(ports, targets)]
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), *pairs, stdin=pipe, stdout=pipe, start_new_session=True
        )
        self.reader = asyncio.create_task(self.read())
        await self.replies.get()
        return [Proxy(self, number, port) for number, port in enumerate(ports)]

    async def read(self) -> None:
        while line := (await self.process.stdout.readline()).decode().split():
            if line[0] == "stall":
                now = time.monotonic()
                self.stalls.append((now - float(line[1]), now))
            else:
                self.replies.put_nowait(line[0])

    async def send(self, *words: object) -> None:
        """Returns when the command is done."""
        async with self.lock:
            self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
            await self.replies.get()

    async def discard(self) -> None:
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        if self.reader:
            self.reader.cancel()


@dataclass
class Proxy:
    """The connections of one instance to one server."""

    proxies: Proxies
    number: int
    port: int

    async def send(self, *words: object) -> None:
        await self.proxies.send(self.number, *words)
