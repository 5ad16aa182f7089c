"""Throw-away servers that can be killed, frozen and started again on the same port."""

import asyncio
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import sys
from pathlib import Path

from harness.http_client import Connection

START_TIMEOUT = 30.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
# Of twenty pets, twelve are available, three pending, four sold, and one has no status.
PETS = """
    INSERT INTO pets (name, category_id, status)
    SELECT 'pet-' || n, n % 50,
           CASE WHEN n % 20 < 12 THEN 1 WHEN n % 20 < 15 THEN 2 WHEN n % 20 < 19 THEN 3 END
    FROM generate_series(1, {}) AS n"""


class CommandError(Exception):
    """A command ended with an exit code other than 0."""


class Server:
    """A process with a fixed port. Its log is a file in the folder; every start appends to it."""

    port: int
    ready = True  # whether a load balancer would open connections to it
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

    async def spawn(self, stdin=asyncio.subprocess.DEVNULL) -> None:
        with self.log.open("a") as output:
            self.process = await asyncio.create_subprocess_exec(
                *map(str, self.command), stdin=stdin, stdout=output, stderr=output, cwd=self.folder,
                start_new_session=True, **self.options,
            )

    async def is_ready(self) -> bool:
        return await accepts(self.port)

    async def connect(self, **options) -> Connection:
        return await Connection.open(self.port, **options)

    async def stop(self, number: signal.Signals, timeout: float = 60) -> int:
        """Sends a signal and returns the exit code."""
        self.process.send_signal(number)
        async with asyncio.timeout(timeout):
            return await self.process.wait()

    async def freeze(self) -> None:
        """Suspends the process, then its children."""
        os.kill(self.pid, signal.SIGSTOP)
        self.frozen = [self.pid]
        for child in family(self.pid).keys() - {self.pid}:
            os.kill(child, signal.SIGSTOP)
            self.frozen.append(child)

    async def thaw(self) -> None:
        for process in reversed(self.frozen):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
        self.frozen = []

    async def discard(self) -> None:
        """Ends the process at once, whatever its state."""
        await self.thaw()
        if self.process and self.process.returncode is None:
            self.process.send_signal(self.last_signal)
            await self.process.wait()


class Postgres(Server):
    """A PostgreSQL server with its defaults, durable writes among them, except for `settings`."""

    last_signal = signal.SIGQUIT  # ends its children too

    def __init__(self, folder: Path, **settings: object):
        self.programs, self.port, self.data = postgres_programs(), free_port(), folder / "data"
        options = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(folder, "postgres")
            options = {"user": "postgres", "group": "postgres", "extra_groups": []}
        settings = {"port": self.port, "unix_socket_directories": "", "listen_addresses": "127.0.0.1"} | settings
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        super().__init__(folder, "postgres", [self.programs / "postgres", "-D", self.data, *arguments], **options)

    async def create(self) -> None:
        """Starts the server with an empty database."""
        initdb = [self.programs / "initdb", "-D", self.data, "--no-sync", "--auth=trust", "--username=postgres"]
        await run(*initdb, "--encoding=UTF8", "--locale=C.UTF-8", cwd=self.folder, **self.options)
        await self.start()
        await self.sql("CREATE DATABASE store", database="postgres")

    def url(self, port: int | None = None, database: str = "store") -> str:
        return f"postgres://postgres@127.0.0.1:{port or self.port}/{database}"

    async def sql(self, *statements: str, database: str = "store") -> str:
        commands = [part for statement in statements for part in ("-c", statement)]
        psql = [self.programs / "psql", "-d", self.url(database=database), "-qAtX", "-v", "ON_ERROR_STOP=1"]
        return await run(*psql, *commands)

    async def end_sessions(self) -> None:
        sessions = "pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        await self.sql(f"SELECT pg_terminate_backend(pid) FROM {sessions}")

    async def lock(self, seconds: float, mode: str = "ACCESS EXCLUSIVE") -> None:
        """Holds a lock of the table. `EXCLUSIVE` allows reads, so that /ready is still 200."""
        await self.sql(f"BEGIN; LOCK TABLE pets IN {mode} MODE", f"SELECT pg_sleep({seconds})", "COMMIT")

    async def is_ready(self) -> bool:
        return await succeeds(self.sql("SELECT 1", database="postgres"))


class Redis(Server):
    """A Redis server that writes each change to disk before it confirms it, if it is durable."""

    def __init__(self, folder: Path, durable: bool = True):
        self.port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", self.port, "--dir", folder, "--save", ""]
        durability = ["--appendonly", "yes", "--appendfsync", "always"] if durable else []
        super().__init__(folder, "redis", [*command, *durability])

    async def cli(self, *arguments: str) -> str:
        return await run("redis-cli", "-e", "-p", self.port, *arguments)

    async def kill_clients(self) -> None:
        await self.cli("CLIENT", "KILL", "TYPE", "normal")

    async def is_ready(self) -> bool:
        return await succeeds(self.cli("PING"))


async def create_certificate(folder: Path, *names: str) -> Path:
    """Returns a PEM file with a key and a certificate of hosts, such as `DNS:localhost`."""
    path = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-subj", "/CN=animal-store", "-addext", f"subjectAltName={','.join(names)}", "-days", "2"]
    path.write_text(await run(*command, *subject, "-keyout", "-", "-out", "-"))
    return path


async def lock_file(file: Path, seconds: float) -> None:
    """Holds the lock of writers, as another program that uses the SQLite file does."""
    connection = sqlite3.connect(file, isolation_level=None, timeout=30, check_same_thread=False)
    with contextlib.closing(connection):
        await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
        await asyncio.sleep(seconds)


def shared_storage(postgres_url: str, redis_port: int) -> dict[str, str]:
    """The settings of an instance that shares its pets and keys with others."""
    return {
        "storage.backend": "postgres", "storage.postgres.url": postgres_url,
        "keys.backend": "redis", "keys.redis.url": f"redis://127.0.0.1:{redis_port}",
    }


def environment(settings: dict[str, object]) -> dict[str, str]:
    """The variables of settings, by their keys in the configuration file."""
    return {f"ANIMAL_STORE_{key.upper().replace('.', '__')}": str(value) for key, value in settings.items()}


class Instance(Server):
    """A running `animal-store serve`, by default with pets and keys in a file in the folder."""

    def __init__(self, folder: Path, name: str, program: Path, settings: dict[str, object] = {}):
        self.port, self.management_port = free_port(), free_port()
        addresses = {"http.listen": f"127.0.0.1:{self.port}", "management.listen": f"127.0.0.1:{self.management_port}"}
        variables = environment(addresses | {"log.format": "json"} | settings)
        super().__init__(folder, name, [program, "serve"], env=variables)

    async def is_ready(self) -> bool:
        return await accepts(self.port) and await accepts(self.management_port)


class KeyCommands:
    """`animal-store keys` with the settings of the keys."""

    def __init__(self, program: Path, folder: Path, settings: dict[str, object] = {}):
        settings = {key: value for key, value in settings.items() if key.startswith("keys.")}
        self.program, self.folder, self.variables = program, folder, environment(settings)
        self.create_options = [] if settings else ["--create"]  # the file

    async def run(self, *arguments: str) -> str:
        return await run(self.program, "keys", *arguments, env=self.variables, cwd=self.folder)

    async def create(self, label: str, *options: str) -> str:
        """Returns the token of a new key."""
        return (await self.run("create", *self.create_options, "--label", label, *options)).strip()

    async def find(self, label: str) -> str:
        """Returns the id of the key with this label."""
        listed = await self.run("list", "--json")
        return re.search(rf'"id":"([^"]+)","label":"{label}"', re.sub(r"\s*([:,])\s*", r"\1", listed))[1]

    async def revoke(self, key: str) -> None:
        """Returns when the key is revoked. Retries until the storage confirms it."""
        while True:
            try:
                await self.run("revoke", key)
                return
            except CommandError as error:
                if "no API key has the id" in str(error):  # an earlier attempt succeeded unconfirmed
                    return
            await asyncio.sleep(0.05)


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


async def succeeds(command) -> bool:
    try:
        await command
    except CommandError:
        return False
    return True


async def accepts(port: int) -> bool:
    """Returns true if a connection to the port can be opened."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def postgres_programs() -> Path:
    """The folder of PostgreSQL's server programs, which Debian does not put into PATH."""
    if postgres := shutil.which("postgres"):
        return Path(postgres).resolve().parent
    installed = [postgres.parent for postgres in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not installed:
        sys.exit("PostgreSQL is missing: apt-get install postgresql")
    return max(installed, key=lambda programs: float(programs.parent.name))


def free_port() -> int:
    """A port below those that the system assigns by itself, so that it is still free when its server restarts."""
    while True:
        port = random.SystemRandom().randrange(10000, 30000)
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            return port


def family(root: int) -> dict[int, float]:
    """CPU seconds of a process and of each descendant, each with those of its children that it has waited for."""
    parents, seconds = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = stat.read_text().rpartition(")")[2].split()
            process = int(stat.parent.name)
            parents[process], seconds[process] = int(fields[1]), sum(map(int, fields[11:15])) / CLOCK_TICKS
    members, generation = set(), {root}
    while generation:
        members |= generation
        generation = {process for process, parent in parents.items() if parent in generation}
    return {process: seconds[process] for process in members & seconds.keys()}


def cpu_seconds(root: int) -> float:
    return sum(family(root).values())
