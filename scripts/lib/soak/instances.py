"""Instances of the service, each behind its own proxies, and the commands that change API keys."""

import asyncio
import re
from pathlib import Path

from soak.proxies import Proxies, Proxy
from soak.servers import CommandError, Postgres, Redis, Server, free_port, run

# The defaults of `keys.redis.lease` in seconds: the longest time for which a revoked key is accepted.
LEASE = 0.6


class Instance(Server):
    """A running `animal-store serve` with its defaults."""

    def __init__(self, folder: Path, name: str, program: Path, storage: Proxy, keys: Proxy):
        self.storage, self.keys = storage, keys
        self.port, self.management_port = free_port(), free_port()
        settings = {
            "ANIMAL_STORE_HTTP__LISTEN": f"127.0.0.1:{self.port}",
            "ANIMAL_STORE_MANAGEMENT__LISTEN": f"127.0.0.1:{self.management_port}",
            "ANIMAL_STORE_STORAGE__BACKEND": "postgres",
            "ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION": "24h",
            "ANIMAL_STORE_STORAGE__POSTGRES__URL": f"postgres://postgres@127.0.0.1:{storage.port}/store",
            "ANIMAL_STORE_KEYS__BACKEND": "redis",
            "ANIMAL_STORE_KEYS__REDIS__URL": f"redis://127.0.0.1:{keys.port}",
            "ANIMAL_STORE_LOG__FORMAT": "json",
        }
        super().__init__(folder, name, [program, "serve"], env=settings)
        self.ready = False  # the last response of /ready

    async def is_ready(self) -> bool:
        return await accepts(self.port) and await accepts(self.management_port)


async def accepts(port: int) -> bool:
    """Returns true if a connection to the port can be opened."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


class KeyCommands:
    """`animal-store keys`, which connects to Redis without a proxy."""

    def __init__(self, program: Path, folder: Path, redis: Redis):
        self.program, self.folder = program, folder
        self.settings = {"ANIMAL_STORE_KEYS__BACKEND": "redis"}
        self.settings["ANIMAL_STORE_KEYS__REDIS__URL"] = f"redis://127.0.0.1:{redis.port}"

    async def run(self, *arguments: str) -> str:
        return await run(self.program, "keys", *arguments, env=self.settings, cwd=self.folder)

    async def create(self, label: str, *options: str) -> str:
        """Returns the token of a new key."""
        return (await self.run("create", "--label", label, *options)).strip()

    async def find(self, label: str) -> str:
        """Returns the id of the key with this label."""
        listed = await self.run("list", "--json")
        return re.search(rf'"id":"([^"]+)","label":"{label}"', re.sub(r"\s*([:,])\s*", r"\1", listed))[1]

    async def revoke(self, key: str) -> None:
        """Returns when the key is revoked. Retries until Redis confirms it."""
        while True:
            try:
                await self.run("revoke", key)
                return
            except CommandError as error:
                if "no API key has the id" in str(error):  # an earlier attempt succeeded unconfirmed
                    return
            await asyncio.sleep(0.05)


async def create_instances(folder: Path, program: Path, proxies: Proxies, postgres: Postgres, redis: Redis) -> list:
    """The instances A and B, not started, each with proxies of its own."""
    a_storage, b_storage, a_keys, b_keys = await proxies.start([postgres.port, postgres.port, redis.port, redis.port])
    return [Instance(folder, "A", program, a_storage, a_keys), Instance(folder, "B", program, b_storage, b_keys)]
