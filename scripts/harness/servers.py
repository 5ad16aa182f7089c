"""Throw-away servers that can be killed, frozen and started again on the same port."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.http_client import Connection

# Also on a machine that stalls.
START_TIMEOUT = 120.0
RESERVED: list[socket.socket] = []  # the ports of this process


class CommandError(Exception):
    """A command ended with an exit code other than 0."""


@dataclass(frozen=True)
class Machine:
    """Where a server runs: this machine, or a network namespace with an address and a command that enters it."""

    host: str = "127.0.0.1"
    enter: tuple[str, ...] = ()


HERE = Machine()


class Server:
    """A process with a fixed port. Its log is a file in the folder; every start appends to it."""

    ready = True  # whether a load balancer would open connections to it
    last_signal = signal.SIGKILL
    awaited = 0  # bytes of the log, up to the text that was awaited last

    def __init__(self, folder: Path, name: str, port: int, command: list, machine: Machine = HERE, **options):
        self.folder, self.name, self.port = folder, name, port
        self.machine, self.options = machine, options
        self.command = [*machine.enter, *command]
        self.log = folder / f"{name}.log"
        self.process: asyncio.subprocess.Process | None = None

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

    async def spawn(self, stdin=asyncio.subprocess.DEVNULL) -> None:
        with self.log.open("a") as output:
            self.process = await asyncio.create_subprocess_exec(
                *map(str, self.command), stdin=stdin, stdout=output, stderr=output, cwd=self.folder,
                start_new_session=True, **self.options,
            )

    async def is_ready(self) -> bool:
        return await accepts(self.port, self.machine.host)

    async def connect(self, **options) -> Connection:
        return await Connection.open(self.port, self.machine.host, **options)

    async def stop(self, number: signal.Signals, timeout: float = 60) -> int:
        """Sends a signal and returns the exit code."""
        self.process.send_signal(number)
        async with asyncio.timeout(timeout):
            return await self.process.wait()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> list[str]:
        """Stops the process. Returns the failure, in words."""
        code = await self.stop(number)
        return [f"{number.name}: exit code {code} of {self.name}"] if code else []

    async def next_in_log(self, text: str) -> None:
        """Waits until the log has a text after the one that was awaited before."""
        with self.log.open("rb") as log:
            log.seek(self.awaited)
            new = b""
            async with asyncio.timeout(START_TIMEOUT):
                while (found := (new := new + log.read()).find(text.encode())) < 0:
                    await asyncio.sleep(0.02)
        self.awaited += found + len(text.encode())

    async def freeze(self) -> None:
        """Suspends the process, then its children."""
        os.kill(self.pid, signal.SIGSTOP)
        for child in children(self.pid):
            os.kill(child, signal.SIGSTOP)

    async def thaw(self) -> None:
        for process in (*children(self.pid), self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    async def discard(self) -> None:
        """Ends the process at once, whatever its state."""
        if self.process and self.process.returncode is None:
            await self.thaw()
            self.process.send_signal(self.last_signal)
            await self.process.wait()


class Postgres(Server):
    """A PostgreSQL server with its defaults, durable writes among them, except for `settings`."""

    last_signal = signal.SIGQUIT  # ends its children too

    def __init__(self, folder: Path, **settings: object):
        self.programs, self.data, port = postgres_programs(), folder / "data", free_port()
        settings = {"port": port, "unix_socket_directories": "", "listen_addresses": "127.0.0.1"} | settings
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        command = as_postgres(folder, self.programs / "postgres", "-D", self.data, *arguments)
        super().__init__(folder, "postgres", port, command)

    async def start(self) -> None:
        """The first start creates an empty database."""
        if self.data.exists():
            return await super().start()
        options = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"]
        initdb = as_postgres(self.folder, self.programs / "initdb", "-D", self.data, *options)
        await run(*initdb, cwd=self.folder)
        await super().start()
        await self.sql("CREATE DATABASE store", database="postgres")

    def url(self, port: int | None = None, database: str = "store") -> str:
        return f"postgres://postgres@127.0.0.1:{port or self.port}/{database}"

    def psql(self, database: str = "store") -> list:
        return [self.programs / "psql", "-d", self.url(database=database), "-qAtX", "-v", "ON_ERROR_STOP=1"]

    async def sql(self, *statements: str, database: str = "store") -> str:
        commands = [part for statement in statements for part in ("-c", statement)]
        return await run(*self.psql(database), *commands)

    async def end_sessions(self) -> None:
        sessions = "pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        await self.sql(f"SELECT pg_terminate_backend(pid) FROM {sessions}")

    async def is_ready(self) -> bool:
        return await succeeds(self.sql("SELECT 1", database="postgres"))


class Redis(Server):
    """A Redis server, or a Sentinel, which rewrites its configuration file. A durable server writes each change to disk
    before it confirms it."""

    DURABLE = 'save ""', "appendonly yes", "appendfsync always"

    def __init__(self, folder: Path, name: str = "redis", machine: Machine = HERE, lines: Sequence[str] = DURABLE):
        port, home = free_port(), folder / name
        home.mkdir()
        lines = (f"port {port}", f"bind {machine.host}", "protected-mode no", f"dir {home}", *lines)
        (home / "redis.conf").write_text("\n".join(lines) + "\n")
        super().__init__(home, name, port, ["/usr/bin/redis-server", home / "redis.conf"], machine)

    async def cli(self, *arguments: str) -> str:
        return await run("redis-cli", "-e", "-h", self.machine.host, "-p", self.port, *arguments)

    async def kill_clients(self) -> None:
        await self.cli("CLIENT", "KILL", "TYPE", "normal")

    async def is_ready(self) -> bool:
        return await succeeds(self.cli("PING"))


@contextlib.asynccontextmanager
async def running(*servers: Server) -> AsyncIterator[None]:
    """Starts servers in their order, and ends all of them after the block."""
    try:
        for server in servers:
            await server.start()
        yield
    finally:
        await asyncio.gather(*(server.discard() for server in servers), return_exceptions=True)


async def until(condition: Callable[[], Awaitable[object]], timeout: float = START_TIMEOUT) -> None:
    """Waits for a condition. A question without an answer counts as false."""
    async with asyncio.timeout(timeout):
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(15):
                    if await condition():
                        return
            await asyncio.sleep(0.1)


async def create_certificate(folder: Path, *names: str) -> Path:
    """Returns a PEM file with a key and a certificate of hosts, such as `DNS:localhost`."""
    path = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-subj", "/CN=animal-store", "-addext", f"subjectAltName={','.join(names)}", "-days", "2"]
    path.write_text(await run(*command, *subject, "-keyout", "-", "-out", "-"))
    return path


async def run(*command: object, **options) -> str:
    """Returns the standard output of a command. Raises CommandError if it fails."""
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


async def succeeds(command) -> bool:
    try:
        await command
    except CommandError:
        return False
    return True


async def accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Returns true if a connection to the port can be opened."""
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


def as_postgres(folder: Path, *command: object) -> list:
    """A command of the owner of the folder. PostgreSQL and PgBouncer refuse to run as root."""
    if os.geteuid():
        return [*command]
    shutil.chown(folder, "postgres")
    return ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]


def postgres_programs() -> Path:
    """The folder of PostgreSQL's server programs, which Debian does not put into PATH."""
    if postgres := shutil.which("postgres"):
        return Path(postgres).resolve().parent
    installed = [postgres.parent for postgres in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not installed:
        sys.exit("PostgreSQL is missing: apt-get install postgresql")
    return max(installed, key=lambda programs: float(programs.parent.name))


def free_port() -> int:
    """A port below those that the system assigns by itself, so that it is still free when its server restarts. Until
    this process ends, no other one gets it from here: servers share an address with a socket that does not listen."""
    while True:
        reserved = socket.socket()
        try:
            reserved.bind(("127.0.0.1", random.SystemRandom().randrange(10000, 30000)))
        except OSError:
            reserved.close()
            continue
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        RESERVED.append(reserved)
        return reserved.getsockname()[1]


def children(process: int) -> list[int]:
    """The processes that a process has started and not waited for."""
    try:
        return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]
    except (FileNotFoundError, ProcessLookupError):
        return []
