"""The load, and what happens during it so that each metric moves."""

import asyncio
import time

from harness import creators, errors, readers
from harness.client import Client, Load
from harness.http_client import Request
from harness.journal import Fault
from harness.stages import FileStage, SharedStage
from harness.soak import revocations

# Limits that the burst exceeds and the load does not. The log of requests is off: a debug build spends a fifth on it.
SETTINGS = {"log.filter": "warn", "http.max_in_flight": 64}
LOCK_SECONDS = 1.0  # shorter than the statement timeout
KEYS, STORAGE = frozenset({"keys"}), frozenset({"reads", "creates"})

BEHAVIOURS = {
    creators.create_without_key: 8, creators.create_with_key: 6, readers.read_acknowledged: 6, readers.get_newest: 2,
    readers.list_pets: 6, readers.walk: 1, errors.be_refused: 4, revocations.revoke_keys: 1,
}


async def run_faults(load: Load, stage: SharedStage | FileStage, seconds: float) -> None:
    """What happens at fixed shares of the load. The service survives it; docs/operations says what clients may get."""
    start = time.monotonic()

    async def lock_pets() -> None:
        locked = asyncio.create_task(stage.lock(LOCK_SECONDS))
        await asyncio.sleep(LOCK_SECONDS / 4)
        await asyncio.gather(*(send_burst(Client(load, f"burst {number}")) for number in range(250)))
        await locked

    happenings = [(0.7, "pets are locked and a burst arrives", KEYS | STORAGE, lock_pets)]
    if isinstance(stage, SharedStage):
        happenings = [
            (0.3, "PostgreSQL ends its sessions", STORAGE, stage.postgres.end_sessions),
            (0.5, "Redis closes its connections", KEYS, stage.redis.kill_clients),
        ] + happenings
    for share, name, impairs, fault in happenings:
        await asyncio.sleep(max(0.0, start + share * seconds - time.monotonic()))
        record = load.journal.begin(Fault(name, frozenset(load.instances), impairs))
        await fault()
        record.end = time.monotonic()
    await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))


async def send_burst(client: Client) -> None:
    """Sends one request, at the same time as others: four in ten are creates with one key, so that its share is
    exceeded."""
    if client.rng.random() < 0.4:
        client.token, create = client.load.tokens[0], client.load.ledger.new()
        await creators.attempt(client, create, creators.create_request(create, client.token), "A")
    else:
        await client.send(Request("burst", "GET", "/v1/pets/1", frozenset({200}), readers.USES, client.token), "A")
    client.close()
