"""The servers of a run: two instances over PostgreSQL and Redis, or one instance over a file."""

import contextlib
import json
import sqlite3
from pathlib import Path

from harness.ledger import STATUSES
from harness.proxies import Proxies, Proxy
from harness.servers import Instance, KeyCommands, Postgres, Redis, lock_file, shared_storage
from soak import faults

TABLE = "SELECT json_array(id, name, category_id, status) FROM pets ORDER BY id"


class SharedStage:
    """Instances A and B, each with its own proxies in front of PostgreSQL and Redis. A is never restarted."""

    faults = faults.SHARED

    def __init__(self, folder: Path, program: Path, settings: dict[str, object] = {}):
        self.postgres, self.redis, self.proxies = Postgres(folder), Redis(folder), Proxies()
        self.commands = KeyCommands(program, folder, shared_storage("", self.redis.port))
        self.storage = {name: Proxy(self.postgres.port) for name in "AB"}
        self.keys = {name: Proxy(self.redis.port) for name in "AB"}
        self.stalls = self.proxies.stalls
        self.instances = {}
        for name in "AB":
            shared = shared_storage(self.postgres.url(self.storage[name].port), self.keys[name].port)
            self.instances[name] = Instance(folder, name, program, shared | settings)

    async def start(self) -> None:
        await self.postgres.create()
        await self.redis.start()
        for proxy in (*self.storage.values(), *self.keys.values()):
            await self.proxies.run(proxy.accept())

    async def lock(self, seconds: float) -> None:
        """Holds a lock of the pets."""
        await self.postgres.lock(seconds)

    async def rows(self) -> list[list]:
        table = await self.postgres.sql(TABLE.replace("json_array", "json_build_array"))
        return [as_row(line) for line in table.splitlines()]

    async def discard(self) -> None:
        for each in (*self.instances.values(), self.redis, self.postgres):
            await each.discard()


class FileStage:
    """Instance A, with its pets and keys in a file."""

    faults = faults.SQLITE
    stalls = ()

    def __init__(self, folder: Path, program: Path, settings: dict[str, object] = {}):
        self.file = folder / "animal-store.db"
        self.commands = KeyCommands(program, folder)
        self.instances = {"A": Instance(folder, "A", program, settings)}

    async def start(self) -> None:
        pass

    async def lock(self, seconds: float) -> None:
        await lock_file(self.file, seconds)

    async def rows(self) -> list[list]:
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            return [as_row(line) for (line,) in connection.execute(TABLE)]

    async def discard(self) -> None:
        await self.instances["A"].discard()


def as_row(line: str) -> list:
    pet, name, category, status = json.loads(line)
    return [pet, name, category, status and STATUSES[status - 1]]
