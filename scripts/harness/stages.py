"""What a load needs: two instances over PostgreSQL, and Redis or not, or one instance over a file, and API keys."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from harness import creators, readers
from harness.client import Load, clients
from harness.proxies import Proxies, Proxy
from harness.servers import CommandError, Postgres, Redis, Server, run, running, succeeds
from harness.service import Instance, KeyCommands, shared_storage

# Seconds after which a client does not use an idle connection again: less than the second after which the service
# closes idle connections in a shutdown.
MAX_IDLE = 0.5
PETS = "SELECT id || ' ' || name FROM pets"


class Stage:
    """Instances by name, of which A is never restarted in a soak."""

    instances: dict[str, Instance]
    commands: KeyCommands
    servers: Sequence[Server] = ()  # that the instances use
    stalls: Sequence[tuple[float, float]] = ()
    has_other_keys = False  # API keys that are not in the store of the pets

    async def start_servers(self) -> None:
        pass

    def locked(self, mode: str = "ACCESS EXCLUSIVE") -> contextlib.AbstractAsyncContextManager:
        """Holds a lock of the table of pets during the block. `EXCLUSIVE` allows reads, so that /ready is still 200."""
        raise NotImplementedError

    async def lock(self, seconds: float) -> None:
        async with self.locked():
            await asyncio.sleep(seconds)

    @contextlib.asynccontextmanager
    async def running(self, seed: int = 1, entry: Server | None = None) -> AsyncIterator[Load]:
        """Runs everything. The clients of the load use the entry, if there is one, instead of the instances."""
        front = [entry] if entry else []
        try:
            await self.start_servers()
            tokens = [await self.commands.create(f"writer-{number}") for number in range(4)]
            reader = await self.commands.create("reader", "--scopes", "read")
            async with running(*self.instances.values(), *front):
                yield Load({entry.name: entry} if entry else self.instances, self.commands, tokens, reader, seed)
        finally:
            await asyncio.gather(*(server.discard() for server in self.servers), return_exceptions=True)

    async def end(self) -> list[str]:
        """Stops the instances. Returns the failures, in words."""
        return [failure for instance in self.instances.values() for failure in await instance.end()]


class SharedStage(Stage):
    """Instances A and B. With `faults`, each has its own proxies in front of PostgreSQL and Redis. Without `redis`,
    keys are in PostgreSQL."""

    def __init__(
        self, folder: Path, program: Path, settings: dict[str, object] = {}, faults: bool = True, redis: bool = True
    ):
        self.folder, self.has_other_keys = folder, redis
        self.postgres, self.redis = Postgres(folder), Redis(folder) if redis else None
        self.servers = [self.redis, self.postgres] if self.redis else [self.postgres]
        self.proxies = Proxies() if faults else None
        self.stalls = self.proxies.stalls if faults else ()
        self.storage = {name: Proxy(self.postgres.port) for name in "AB"}
        self.keys = {name: Proxy(self.redis.port) for name in "AB"} if self.redis else {}
        direct = shared_storage(self.postgres.url(), self.redis and self.redis.port)
        self.commands = KeyCommands(program, folder, direct)
        self.instances = {}
        for name in "AB":
            storage = self.storage[name] if faults else self.postgres
            keys = self.keys.get(name) if faults else self.redis
            shared = shared_storage(self.postgres.url(storage.port), keys and keys.port)
            self.instances[name] = Instance(folder, name, program, shared | settings)

    async def start_servers(self) -> None:
        await self.postgres.start()
        await self.commands.migrate()
        if self.redis:
            await self.redis.start()
        if self.proxies:
            for proxy in (*self.storage.values(), *self.keys.values()):
                await self.proxies.run(proxy.accept())

    async def refuse(self, category: int) -> None:
        """Lets the table refuse pets of a category."""
        await self.postgres.sql(f"ALTER TABLE pets ADD CHECK (category_id <> {category})")

    async def back_up(self, path: Path) -> dict[int, str]:
        """Returns the ids and the names of the pets in the backup, from a database that is restored from it."""
        dump = "--format=custom", f"--file={path}", f"--dbname={self.postgres.url()}"
        await run(self.postgres.programs / "pg_dump", *dump)
        await self.postgres.sql("DROP DATABASE IF EXISTS rehearsal", "CREATE DATABASE rehearsal", database="postgres")
        await self.restore(path, "rehearsal")
        return pets_of(await self.postgres.sql(PETS, database="rehearsal"))

    async def restore(self, path: Path, database: str = "store") -> None:
        """Replaces the tables in one transaction. It is repeated if a deadlock with requests ends it."""
        command = [self.postgres.programs / "pg_restore", "--clean", "--if-exists", "--single-transaction"]
        while not await succeeds(run(*command, f"--dbname={self.postgres.url(database=database)}", path)):
            await asyncio.sleep(0.1)

    @contextlib.asynccontextmanager
    async def locked(self, mode: str = "ACCESS EXCLUSIVE") -> AsyncIterator[None]:
        pipe = asyncio.subprocess.PIPE
        session = await asyncio.create_subprocess_exec(*self.postgres.psql(), stdin=pipe, stdout=pipe)
        try:
            session.stdin.write(f"BEGIN; LOCK TABLE pets IN {mode} MODE; SELECT 'locked';\n".encode())
            if await session.stdout.readline() != b"locked\n":
                raise CommandError("the table of pets cannot be locked")
            yield
        finally:
            session.stdin.close()  # ends the session
            await session.wait()


class FileStage(Stage):
    """One instance, with its pets and keys in a file."""

    def __init__(self, folder: Path, program: Path, settings: dict[str, object] = {}, instance=Instance):
        self.folder, self.file, self.program = folder, folder / "animal-store.db", program
        self.commands = KeyCommands(program, folder)
        self.instances = {"A": instance(folder, "A", program, settings)}

    async def refuse(self, category: int) -> None:
        """Lets the table refuse pets of a category."""
        trigger = f"refuse BEFORE INSERT ON pets WHEN NEW.category_id = {category}"
        self.execute(f"CREATE TRIGGER IF NOT EXISTS {trigger} BEGIN SELECT RAISE(ABORT, 'refused'); END")

    def execute(self, statement: str, file: Path | None = None) -> str:
        connection = sqlite3.connect(file or self.file, isolation_level=None, timeout=30)
        with contextlib.closing(connection):
            return "\n".join(row[0] for row in connection.execute(statement))

    async def back_up(self, path: Path) -> dict[int, str]:
        """Returns the ids and the names of the pets in the backup."""
        await run(self.program, "backup", path, env=self.commands.variables, cwd=self.folder)
        return pets_of(await asyncio.to_thread(self.execute, PETS, path))

    async def restore(self, path: Path) -> None:
        """Replaces the content of the file as `.restore` of sqlite3 does."""
        await run("sqlite3", "-cmd", ".timeout 30000", self.file, f".restore {path}")

    @contextlib.asynccontextmanager
    async def locked(self, mode: str = "") -> AsyncIterator[None]:
        """Holds the lock of writers, as another program that uses the file does."""
        connection = sqlite3.connect(self.file, isolation_level=None, timeout=30, check_same_thread=False)
        with contextlib.closing(connection):
            await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
            yield


def pets_of(lines: str) -> dict[int, str]:
    pets = (line.split(" ", 1) for line in lines.splitlines())
    return {int(identity): name for identity, name in pets}


@contextlib.asynccontextmanager
async def undisturbed(load: Load, connections: int) -> AsyncIterator[None]:
    """Runs clients of which no stop of an instance may fail a request. Of eight, four create pets without an
    Idempotency-Key, three with one, and one lists them."""
    load.max_idle = MAX_IDLE
    eighth = max(1, connections // 8)
    behaviours = {creators.create_without_key: max(1, connections - 4 * eighth)}
    behaviours |= {creators.create_with_key: 3 * eighth, readers.list_pets: eighth}
    async with clients(load, behaviours):
        yield
