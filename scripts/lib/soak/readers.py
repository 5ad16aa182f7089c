"""Clients that read: acknowledged pets on every instance, lists, and walks over all pages."""

import re
import time

from soak.client import Client
from soak.creators import RESOLUTION
from soak.http_client import Request
from soak.ledger import STATUSES, Create
from soak.rules import parse
from soak.timeline import Exchange

USES = frozenset({"keys", "reads"})
OK = frozenset({200})


async def read_acknowledged(client: Client) -> None:
    """Gets acknowledged pets from both instances until both have returned them, otherwise pets at random."""
    load = client.load
    unread = load.ledger.unread
    while load.running or (unread and time.monotonic() < load.end + RESOLUTION):
        if unread:
            create, instance = unread.popleft()
            # A connection is not opened to an instance that is known to be unavailable.
            if not load.instances[instance].ready or not await get(client, create, instance):
                unread.append((create, instance))
                await client.pause(0.2)
        elif create := load.ledger.random():
            await get(client, create)
        await client.pause(0.03)


async def get(client: Client, create: Create, instance: str | None = None) -> bool:
    """Gets an acknowledged pet. Returns true if it was returned."""
    request = Request("get", "GET", f"/v1/pets/{create.id}", OK, USES, client.token)
    exchange = await client.send(request, instance)
    if exchange.status != 200:
        return False
    if parse(exchange.response.body) != create.members() | {"id": create.id}:
        client.violate("get returned another pet", exchange, create.name)
    if "sunset" not in exchange.response.headers:
        client.violate("get without Sunset", exchange)
    return True


async def get_unknown(client: Client) -> None:
    """Gets pets that do not exist, and unknown routes."""
    while client.load.running:
        target, uses = client.rng.choice((("/v1/pets/9223372036854775807", USES), ("/v1/dogs", frozenset({"keys"}))))
        await client.send(Request("get unknown", "GET", target, frozenset({404}), uses, client.token))
        await client.pause(0.5)


async def list_pets(client: Client) -> None:
    while client.load.running:
        await list_once(client)
        await client.pause(0.06)


async def list_once(client: Client, instance: str | None = None) -> None:
    status, limit = client.rng.choice((None, *STATUSES)), client.rng.choice((1, 20, 100))
    target = f"/v1/pets?limit={limit}" + (f"&status={status}" if status else "")
    headers = {"Accept-Encoding": "gzip"} if client.rng.random() < 0.5 else {}
    exchange = await client.send(Request("list", "GET", target, OK, USES, client.token, headers=headers), instance)
    if exchange.status == 200:
        check_page(client, exchange, limit, status, 0)


async def walk(client: Client) -> None:
    """Follows `Link` from the first page to the last, through all faults."""
    while client.load.running:
        status = client.rng.choice((None, *STATUSES))
        acknowledged = client.load.ledger.acknowledged[status]
        before = len(acknowledged)
        seen = await walk_once(client, status)
        if seen is None:
            return
        client.load.walks += 1
        for create in acknowledged[:before]:
            if create.id not in seen:
                client.load.journal.violate("walk without an acknowledged pet", None, create.name)
        await client.pause(0.5)


async def walk_once(client: Client, status: str | None) -> set[int] | None:
    """Returns the ids on all pages, or None if the load ends first."""
    seen: set[int] = set()
    target = "/v1/pets?limit=100" + (f"&status={status}" if status else "")
    last = 0
    while client.load.running:
        exchange = await client.send(Request("page of a walk", "GET", target, OK, USES, client.token))
        await client.pause(0.04)
        if exchange.status != 200:
            continue
        for pet in check_page(client, exchange, 100, status, last):
            seen.add(pet["id"])
            last = pet["id"]
        link = exchange.response.headers.get("link")
        if not link:
            return seen
        target = "/v1/pets" + re.fullmatch(r'<(\?[^>]*)>; rel="next"', link)[1]
    return None


def check_page(client: Client, exchange: Exchange, limit: int, status: str | None, after: int) -> list[dict]:
    """Returns the pets of a page, which must be in ascending order after an id and have the status, if one is given."""
    pets = parse(exchange.response.body)
    if not isinstance(pets, list) or len(pets) > limit:
        client.violate("list is not an array, or is too long", exchange)
        return []
    creates = client.load.ledger.creates
    for pet in pets:
        create = creates.get(pet["name"])
        if pet["id"] <= after or (status and pet.get("status") != status):
            client.violate("list in a wrong order or with a wrong status", exchange, str(pet))
        if create is None or pet != create.members() | {"id": pet["id"]} or create.id not in (None, pet["id"]):
            client.violate("list with a pet that was not created like this", exchange, str(pet))
        after = pet["id"]
    return pets
