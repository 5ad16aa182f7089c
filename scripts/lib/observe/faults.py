"""What happens during the load, so that the metrics of failures move. The service survives it without a restart; what
clients may get is in docs/operations."""

import asyncio
import time
from dataclasses import dataclass, field

from observe.load import Counts, burst
from observe.requests import CREATE, GET, Request, Tokens, request
from soak.instances import Instance, KeyCommands
from soak.servers import Postgres, Redis

# Limits that the burst exceeds and the load does not. The log of requests is off: a debug build spends a fifth on it.
SETTINGS = {
    "ANIMAL_STORE_LOG__FILTER": "warn",
    "ANIMAL_STORE_HTTP__MAX_IN_FLIGHT": "64",
    "ANIMAL_STORE_HTTP__MAX_IN_FLIGHT_PER_KEY": "40",
    "ANIMAL_STORE_STORAGE__POSTGRES__MAX_WAITING_CREATES": "20",
}
LOCK_SECONDS = 1.0  # shorter than the statement timeout


@dataclass
class Faults:
    """Runs the faults at fixed shares of the load. `happened` has the seconds since the start of the load."""

    postgres: Postgres
    redis: Redis
    keys: KeyCommands
    instance: Instance
    tokens: Tokens
    counts: Counts = field(default_factory=Counts)
    happened: list[tuple[float, str]] = field(default_factory=list)

    async def run(self, seconds: float) -> None:
        start = time.monotonic()
        for share, fault in ((0.15, self.revoke_key), (0.3, self.lose_sessions), (0.5, self.lose_redis),
                             (0.7, self.lock_pets)):
            await asyncio.sleep(start + share * seconds - time.monotonic())
            self.happened.append((time.monotonic() - start, fault.__doc__))
            await fault()

    async def revoke_key(self) -> None:
        """a key is revoked"""
        await self.keys.revoke(await self.keys.find("revoked"))

    async def lose_sessions(self) -> None:
        """PostgreSQL ends its sessions"""
        sessions = "pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        await self.postgres.sql(f"SELECT pg_terminate_backend(pid) FROM {sessions}")

    async def lose_redis(self) -> None:
        """Redis closes its connections"""
        await self.redis.cli("CLIENT", "KILL", "TYPE", "normal")

    async def lock_pets(self) -> None:
        """a table is locked and a burst arrives"""
        lock = "BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE"
        locked = asyncio.create_task(self.postgres.sql(lock, f"SELECT pg_sleep({LOCK_SECONDS})", "COMMIT"))
        await asyncio.sleep(LOCK_SECONDS / 4)
        self.counts += await asyncio.to_thread(burst, self.instance.port, self.burst_requests())
        await locked

    def burst_requests(self) -> list[Request]:
        first, *others = self.tokens.writers
        pet = {"name": "observe-burst", "categoryId": 1}
        creates = [request(CREATE, "POST /v1/pets", {201}, first, pet)] * 100
        return creates + [request(GET, "GET /v1/pets/1", {200}, token) for token in others] * 50
