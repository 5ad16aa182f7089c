"""The load, beside the clients of harness: requests that are refused, and what happens so that each metric moves."""

import asyncio
import time

from harness import creators, readers
from harness.client import Client, Load
from harness.http_client import Request
from harness.timeline import Fault
from soak.stages import SharedStage

# Limits that the burst exceeds and the load does not. The log of requests is off: a debug build spends a fifth on it.
SETTINGS = {
    "log.filter": "warn", "http.max_in_flight": 64, "http.max_in_flight_per_key": 40,
    "storage.postgres.max_waiting_creates": 20,
}
LOCK_SECONDS = 1.0  # shorter than the statement timeout
UNKNOWN = "observe-unknown-token"
KEYS, STORAGE = frozenset({"keys"}), frozenset({"reads", "creates"})
TWO_HOSTS = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
# With a token that is valid, unknown or absent.
VALID = {
    "HEAD /v1/pets": 200, "GET /v1/pets?limit=0": 400, "GET /v1/pets/rex": 404, "GET /observe": 404,
    "HEAD /observe": 404, "DELETE /v1/pets": 405, "POST /v1/pets/1": 405, "PURGE /v1/pets": 405,
}
INVALID = {"GET /v1/pets": 401, "POST /v1/pets": 401, "GET /v1/pets/1": 401, "GET /v1/orders": 401}


async def send_odd_requests(client: Client) -> None:
    """Sends requests that most clients do not send."""
    while client.load.running:
        for token, lines in ((client.token, VALID), (UNKNOWN, INVALID), (None, INVALID)):
            for line, status in lines.items():
                request = Request(line, *line.split(), frozenset({status}), KEYS | STORAGE, token)
                await client.send(request)
        create = client.load.ledger.new()
        request = creators.create_request(create, client.token, frozenset({415}), "wrong media type")
        request.headers["Content-Type"] = "text/plain"
        await creators.attempt(client, create, request)
        await client.send(Request("API document", "GET", "/openapi.json", frozenset({200})))
        await client.send(Request("two hosts", "GET", "/", frozenset({400}), raw=TWO_HOSTS))
        await client.pause(0.1)


async def create_in_pairs(client: Client) -> None:
    """Sends each create twice at the same time to the same instance."""
    twin = Client(client.load, f"twin of {client.name}")
    twin.token = client.token
    while client.load.running:
        create, instance = client.load.ledger.new(key=f"{client.name} {time.monotonic()}"), client.choose()
        requests = [creators.create_request(create, client.token, frozenset({201, 409})) for _ in range(2)]
        pairs = zip((client, twin), requests)
        await asyncio.gather(*(creators.attempt(each, create, request, instance) for each, request in pairs))
        await client.pause(0.1)
    twin.close()


async def use_revoked_key(client: Client) -> None:
    while client.load.running:
        request = Request("revoked key", "GET", "/v1/pets?limit=1", frozenset({200, 401}), KEYS | {"reads"})
        request.token = client.load.revoked_token
        await client.send(request)
        await client.pause(0.1)


BEHAVIOURS = {
    creators.create_without_key: 8, creators.create_with_key: 4, creators.create_invalid: 2, create_in_pairs: 2,
    readers.read_acknowledged: 6, readers.get_newest: 2, readers.list_pets: 6, readers.walk: 1, readers.get_unknown: 1,
    send_odd_requests: 2, use_revoked_key: 1,
}


async def run_faults(load: Load, stage: SharedStage, seconds: float) -> None:
    """What happens at fixed shares of the load. The service survives it; docs/operations says what clients may get."""
    start = time.monotonic()

    async def revoke_key() -> None:
        await load.commands.revoke(await load.commands.find("revoked"))

    async def lock_pets() -> None:
        locked = asyncio.create_task(stage.postgres.lock_pets(LOCK_SECONDS))
        await asyncio.sleep(LOCK_SECONDS / 4)
        await asyncio.gather(*(send_burst(Client(load, f"burst {number}")) for number in range(250)))
        await locked

    for share, name, impairs, fault in (
        (0.15, "a key is revoked", frozenset(), revoke_key),
        (0.3, "PostgreSQL ends its sessions", STORAGE, stage.postgres.terminate_sessions),
        (0.5, "Redis closes its connections", KEYS, stage.redis.kill_clients),
        (0.7, "a table is locked and a burst arrives", KEYS | STORAGE, lock_pets),
    ):
        await asyncio.sleep(max(0.0, start + share * seconds - time.monotonic()))
        record = load.timeline.begin(Fault(name, frozenset(load.instances), impairs))
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
