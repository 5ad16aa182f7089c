"""What a load needs: two instances over PostgreSQL, and Redis or not, or one instance over a file, and API keys."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from harness import creators, readers
from harness.client import Load, clients
from harness.proxies import Proxies, Proxy
from harness.servers import Postgres, Redis, Server, running
from harness.service import Instance, KeyCommands, shared_storage

# Seconds after which a client does not use an idle connection again: less than the second after which the service
# closes idle connections in a shutdown.
MAX_IDLE = 0.5


class Stage:
    """Instances by name, of which A is never restarted in a soak."""

    instances: dict[str, Instance]
    commands: KeyCommands
    servers: Sequence[Server] = ()  # that the instances use
    stalls: Sequence[tuple[float, float]] = ()

    async def start_servers(self) -> None:
        pass

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

    async def lock(self, seconds: float, mode: str = "ACCESS EXCLUSIVE") -> None:
        """Holds a lock of the table of pets. `EXCLUSIVE` allows reads, so that /ready is still 200."""
        statements = f"BEGIN; LOCK TABLE pets IN {mode} MODE", f"SELECT pg_sleep({seconds})", "COMMIT"
        await self.postgres.sql(*statements)


class FileStage(Stage):
    """One instance, with its pets and keys in a file."""

    def __init__(self, folder: Path, program: Path, settings: dict[str, object] = {}, instance=Instance):
        self.file = folder / "animal-store.db"
        self.commands = KeyCommands(program, folder)
        self.instances = {"A": instance(folder, "A", program, settings)}

    async def lock(self, seconds: float, mode: str = "") -> None:
        """Holds the lock of writers, as another program that uses the file does."""
        connection = sqlite3.connect(self.file, isolation_level=None, timeout=30, check_same_thread=False)
        with contextlib.closing(connection):
            await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
            await asyncio.sleep(seconds)


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
