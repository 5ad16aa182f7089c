"""Throw-away servers that can be killed, frozen and started again on the same port: PostgreSQL and Redis."""

import asyncio
import os
import random
import shutil
import signal
import socket
from pathlib import Path

from servers import postgres_programs  # of scripts/bench

START_TIMEOUT = 30.0


class Server:
    """A process with a fixed port. Its log is a file in the folder; every start appends to it."""

    last_signal = signal.SIGKILL

    def __init__(self, folder: Path, name: str, command: list, **options):
        self.folder, self.name, self.command, self.options = folder, name, command, options
        self.log = folder / f"{name}.log"
        self.process: asyncio.subprocess.Process | None = None
        self.frozen: list[int] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    async def start(self) -> None:
        """Returns when the server is ready. A start that fails is retried until the timeout: the predecessor's
        processes may still hold its resources."""
        async with asyncio.timeout(START_TIMEOUT):
            while True:
                await self.spawn()
                while self.process.returncode is None:
                    if await self.is_ready():
                        return
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0.1)

    async def spawn(self) -> None:
        with self.log.open("a") as output:
            self.process = await asyncio.create_subprocess_exec(
                *map(str, self.command), stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=self.folder, start_new_session=True, **self.options,
            )

    async def is_ready(self) -> bool:
        raise NotImplementedError

    async def stop(self, number: signal.Signals, timeout: float = 60) -> int:
        """Sends a signal and returns the exit code."""
        self.process.send_signal(number)
        async with asyncio.timeout(timeout):
            return await self.process.wait()

    def freeze(self) -> None:
        """Suspends the process, then its children."""
        os.kill(self.pid, signal.SIGSTOP)
        self.frozen = [self.pid]
        for child in children(self.pid):
            os.kill(child, signal.SIGSTOP)
            self.frozen.append(child)

    def thaw(self) -> None:
        for process in reversed(self.frozen):
            try:
                os.kill(process, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.frozen = []

    async def discard(self) -> None:
        """Ends the process at once, whatever its state."""
        self.thaw()
        if self.process and self.process.returncode is None:
            self.process.send_signal(self.last_signal)
            await self.process.wait()


class Postgres(Server):
    """A PostgreSQL server with its defaults, durable writes among them."""

    last_signal = signal.SIGQUIT  # ends its children too

    def __init__(self, folder: Path):
        self.programs, self.port = postgres_programs(), free_port()
        self.data = folder / "data"
        options = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(folder, "postgres")
            options = {"user": "postgres", "group": "postgres", "extra_groups": []}
        command = [self.programs / "postgres", "-D", self.data, f"--port={self.port}", "--unix_socket_directories="]
        super().__init__(folder, "postgres", [*command, "--listen_addresses=127.0.0.1"], **options)

    async def create(self) -> None:
        """Starts the server with an empty database."""
        initdb = [self.programs / "initdb", "-D", self.data, "--no-sync", "--auth=trust", "--username=postgres"]
        await run(*initdb, "--encoding=UTF8", "--locale=C.UTF-8", cwd=self.folder, **self.options)
        await self.start()
        await self.sql("CREATE DATABASE store", database="postgres")

    async def sql(self, *statements: str, database: str = "store") -> str:
        commands = [part for statement in statements for part in ("-c", statement)]
        url = f"postgres://postgres@127.0.0.1:{self.port}/{database}"
        return await run(self.programs / "psql", "-d", url, "-qAtX", "-v", "ON_ERROR_STOP=1", *commands)

    async def is_ready(self) -> bool:
        try:
            return await self.sql("SELECT 1", database="postgres") == "1\n"
        except CommandError:
            return False


class Redis(Server):
    """A Redis server that writes each change to disk before it confirms it."""

    def __init__(self, folder: Path):
        self.port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", self.port, "--dir", folder, "--save", ""]
        super().__init__(folder, "redis", [*command, "--appendonly", "yes", "--appendfsync", "always"])

    async def cli(self, *arguments: str) -> str:
        return await run("redis-cli", "-p", self.port, *arguments)

    async def is_ready(self) -> bool:
        try:
            return await self.cli("PING") == "PONG\n"
        except CommandError:
            return False


class CommandError(Exception):
    """A command ended with an exit code other than 0."""


async def run(*command: object, **options) -> str:
    """Returns the standard output of a command.

    Raises CommandError if it fails.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True,
        **options,
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
        raise
    if process.returncode != 0:
        raise CommandError(f"{command[0]} failed with exit code {process.returncode}: {errors.decode().strip()}")
    return output.decode()


def children(parent: int) -> list[int]:
    """Process ids of the children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def free_port() -> int:
    """A port below those that the system assigns by itself, so that it is still free when its server restarts."""
    while True:
        port = random.SystemRandom().randrange(10000, 30000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue
