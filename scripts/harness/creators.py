"""Clients that create pets, with and without an Idempotency-Key, and one whose requests must be refused."""

import asyncio
import json
import time
import uuid
from dataclasses import replace

from harness.client import Client
from harness.history import Create
from harness.http_client import Exchange, Request, parse
from harness.journal import CREATES, EVERYTHING, KEYS

USES = KEYS | CREATES
# Seconds after the end of the load within which each create with a key must get its outcome.
RESOLUTION = 15.0
REFUSED_CATEGORY = -424242  # of pets that the table refuses
TWO_HOSTS = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
REFUSED = {
    "GET /v1/pets?limit=0": 400, "GET /v1/pets/rex": 404, "GET /v1/pets/9223372036854775807": 404, "GET /v1/dogs": 404,
    "GET /dogs": 404, "HEAD /dogs": 404, "DELETE /v1/pets": 405, "POST /v1/pets/1": 405, "PURGE /v1/pets": 405,
}
UNAUTHORIZED = ("GET /v1/pets", "GET /v1/pets/1", "HEAD /v1/pets", "GET /v1/dogs")


def create_request(create: Create, token: str, expected: frozenset = frozenset({201}), operation="create") -> Request:
    headers = {"Idempotency-Key": create.key} if create.key else {}
    body = json.dumps(create.members()).encode()
    return Request(operation, "POST", "/v1/pets", expected, USES, token, body, headers, create)


async def attempt(client: Client, create: Create, request: Request, instance: str | None = None) -> Exchange | None:
    """Sends an attempt, and enters its outcome into the ledger and the history. Returns the exchange if it got 201.

    There is no wait between the response and the entries: the history has the order of the responses.
    """
    exchange = await client.send(request, instance)
    if exchange.status == 201:
        check_created(client, create, exchange)
        return exchange
    # After any other response, the pet was not added by this attempt.
    if exchange.response and exchange.error_code != "outcome_unknown" and exchange.status != 500:
        client.report(client.load.history.refuse(create, exchange.sent, exchange.received), exchange)
    return None


def check_created(client: Client, create: Create, exchange: Exchange) -> None:
    pet = parse(exchange.response.body)
    if not isinstance(pet, dict) or pet | {"id": 0} != create.members() | {"id": 0}:
        client.load.journal.violate("201 with another pet", exchange, create.name)
        return
    client.report(client.load.history.confirm(pet, exchange.sent, exchange.received), exchange)
    if exchange.response.headers.get("location") != f"pets/{pet['id']}":
        client.load.journal.violate("201 with a wrong Location", exchange)
    if create.id is None and exchange.sent >= client.load.history.since:
        create.id = pet["id"]
        client.load.ledger.acknowledged.append(create)


async def create_without_key(client: Client) -> None:
    """Sends each create once."""
    while client.load.running:
        create = client.load.ledger.new()
        await attempt(client, create, create_request(create, client.token))
        await client.pause(0.1)


async def create_with_key(client: Client) -> None:
    """Retries each create, on any instance, until it has a definite outcome. Sometimes the same create is sent twice at
    the same time; sometimes the key is used again afterwards."""
    while client.load.running:
        create = client.load.ledger.new(key=str(uuid.uuid4()))
        if not await resolve(client, create):
            client.load.journal.violate("no definite outcome for an Idempotency-Key", None, create.name)
        elif client.rng.random() < 0.2:
            await send_again(client, create)
        elif client.rng.random() < 0.1:
            other = client.load.ledger.new(key=create.key)
            await attempt(client, other, create_request(other, client.token, frozenset({422}), "reuse of a key"))
        await client.pause(0.1)


async def resolve(client: Client, create: Create) -> bool:
    """Returns true once the create got 201."""
    while time.monotonic() < client.load.end + RESOLUTION:
        together = 2 if client.rng.random() < 0.15 else 1
        # Only another attempt that may be in flight explains a conflict.
        conflict = together > 1 or create.name in client.load.history.attempts
        expected = frozenset({201, 409} if conflict else {201})
        requests = [create_request(create, client.token, expected, "create with key") for _ in range(together)]
        if any(await asyncio.gather(*(attempt(client, create, request) for request in requests))):
            return True
        await client.pause(0.2)
    return False


async def send_again(client: Client, create: Create) -> None:
    """Sends an acknowledged create again."""
    known, since = create.id is not None, client.load.history.since
    exchange = await attempt(client, create, create_request(create, client.token, operation="replay"))
    replayed = exchange and exchange.response.headers.get("idempotency-replayed") == "true"
    # While the store is being replaced, the key may be one that its backup does not have.
    if exchange and not replayed and known and exchange.sent >= since == client.load.history.since:
        client.load.journal.violate("replay without Idempotency-Replayed", exchange)


async def be_refused(client: Client) -> None:
    while client.load.running:
        match client.rng.randrange(6):
            case 0 | 1:
                line, status = client.rng.choice(list(REFUSED.items()))
                await client.send(Request("invalid request", *line.split(), {status}, EVERYTHING, client.token))
            case 2:
                lookup = f"unknown-{client.rng.randrange(10**12)}"
                token = client.rng.choice((lookup, "animalstore_wrongchecksum", "two words", None))
                line = client.rng.choice(UNAUTHORIZED)
                await client.send(Request("wrong token", *line.split(), {401}, KEYS, token))
            case 3:
                await client.send(Request("two hosts", "GET", "/", {400}, raw=TWO_HOSTS))
            case _:
                await create_invalid(client)
        await client.pause(0.1)


async def be_refused_by_the_table(client: Client) -> None:
    """Creates pets that a constraint or a trigger of the table refuses, in batches with those of others. They are in no
    history, so that one that is seen is a violation."""
    while client.load.running:
        create = Create(str(uuid.uuid4()), REFUSED_CATEGORY, None, client.rng.choice((None, str(uuid.uuid4()))))
        request = create_request(create, client.token, frozenset({503}), "create that the table refuses")
        exchange = await client.send(replace(request, create=None))
        if exchange.error_code == "outcome_unknown" and client.load.journal.healthy(exchange.instance):
            client.load.journal.violate("outcome_unknown for a create that the table refuses", exchange)
        await client.pause(0.1)


async def create_invalid(client: Client) -> None:
    """Sends a create that must have no effect."""
    create = client.load.ledger.new()
    request = create_request(create, client.token, operation="invalid create")
    changes, status = client.rng.choice((
        ({"body": json.dumps(create.members() | {"status": "eaten"}).encode()}, 400),
        ({"body": json.dumps({"name": create.name}).encode()}, 400),
        ({"body": request.body[:-1]}, 400),
        ({"token": client.load.reader_token}, 403),
        ({"token": "unknown-token"}, 401),
        ({"headers": {"Content-Type": "text/plain"}}, 415),
    ))
    await attempt(client, create, replace(request, uses=KEYS, expected={status}, **changes))
