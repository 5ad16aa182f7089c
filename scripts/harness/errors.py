"""A client whose requests must be refused: invalid pets, queries, routes, methods, tokens and media types."""

import json

from harness.client import Client
from harness.creators import attempt, create_request
from harness.http_client import Request

EVERYTHING = frozenset({"keys", "reads", "creates"})
TWO_HOSTS = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
REFUSED = {
    "GET /v1/pets?limit=0": 400, "GET /v1/pets/rex": 404, "GET /v1/pets/9223372036854775807": 404, "GET /v1/dogs": 404,
    "GET /dogs": 404, "HEAD /dogs": 404, "DELETE /v1/pets": 405, "POST /v1/pets/1": 405, "PURGE /v1/pets": 405,
}
UNAUTHORIZED = ("GET /v1/pets", "GET /v1/pets/1", "HEAD /v1/pets", "GET /v1/dogs")


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
                await client.send(Request("wrong token", *line.split(), {401}, frozenset({"keys"}), token))
            case 3:
                await client.send(Request("two hosts", "GET", "/", {400}, raw=TWO_HOSTS))
            case _:
                await create_invalid(client)
        await client.pause(0.1)


async def create_invalid(client: Client) -> None:
    """Sends a create that must have no effect."""
    create = client.load.ledger.new()
    request = create_request(create, client.token, frozenset({400}), "invalid create")
    request.uses = frozenset({"keys"})
    match client.rng.randrange(6):
        case 0:
            request.body = json.dumps(create.members() | {"status": "eaten"}).encode()
        case 1:
            request.body = json.dumps({"name": create.name}).encode()
        case 2:
            request.body = request.body[:-1]
        case 3:
            request.token, request.expected = client.load.reader_token, {403}
        case 4:
            request.token, request.expected = "unknown-token", {401}
        case 5:
            request.headers["Content-Type"], request.expected = "text/plain", {415}
    await attempt(client, create, request)
