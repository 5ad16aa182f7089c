"""Clients that read: acknowledged pets on every instance, the newest pets, lists, and walks over all pages."""

import asyncio
import re
import time

from harness.client import Client
from harness.creators import RESOLUTION
from harness.http_client import Exchange, Request, parse
from harness.ledger import STATUSES

USES = frozenset({"keys", "reads"})
OK = frozenset({200})
ALL = "/v1/pets?limit=100"
FINAL_TIMEOUT = 300.0


async def read_acknowledged(client: Client) -> None:
    """Gets acknowledged pets from each instance until it has returned them, otherwise pets at random."""
    load = client.load
    unread = load.ledger.unread
    while load.running or (unread and time.monotonic() < load.end + RESOLUTION):
        if unread:
            create, instance = unread.popleft()
            # A connection is not opened to an instance that is known to be unavailable.
            if not load.instances[instance].ready or not await get(client, create.id, OK, instance):
                unread.append((create, instance))
                await client.pause(0.2)
        elif create := load.ledger.random():
            await get(client, create.id, OK)
        await client.pause(0.03)


async def get_newest(client: Client) -> None:
    """Gets the newest pets, and those that are about to be created."""
    while client.load.running:
        newest = client.load.history.newest
        await get(client, max(1, newest + client.rng.randint(-3, 3)), frozenset({200, 404}))
        await client.pause(0.03)


async def get(client: Client, identity: int, expected: frozenset, instance: str | None = None) -> bool:
    """Gets a pet. Returns true if it was returned."""
    request = Request("get", "GET", f"/v1/pets/{identity}", expected, USES, client.token)
    exchange = await client.send(request, instance)
    if exchange.status not in (200, 404):
        return False
    pet = parse(exchange.response.body) if exchange.status == 200 else None
    client.report(client.load.history.read(identity, pet, exchange.sent, exchange.received), exchange)
    if pet and "sunset" not in exchange.response.headers:
        client.violate("get without Sunset", exchange)
    return bool(pet)


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


async def follow(client: Client) -> None:
    """Requests the last page again and again, and its successor once it is full."""
    target, after = ALL, 0
    while client.load.running:
        exchange = await client.send(Request("newest page", "GET", target, OK, USES, client.token))
        if exchange.status == 200:
            target, after = next_page(exchange, check_page(client, exchange, 100, None, after)) or (target, after)
        await client.pause(0.06)


async def walk(client: Client) -> None:
    """Follows `Link` from the first page to the last, through all faults."""
    while client.load.running:
        status, found = client.rng.choice((None, *STATUSES)), []
        page = ALL + (f"&status={status}" if status else ""), 0
        while page and client.load.running:
            page = await read_page(client, page, status, found)
            await client.pause(0.04)
        client.load.walks += page is None
        await client.pause(0.5)


async def read_all(client: Client) -> int:
    """Compares the history with all pages, after the load. Returns the number of pets."""
    pets, page = [], (ALL, 0)
    async with asyncio.timeout(FINAL_TIMEOUT):
        while page:
            page = await read_page(client, page, None, pets)
    client.close()
    return len(pets)


async def read_page(client: Client, page: tuple[str, int], status: str | None, found: list) -> tuple[str, int] | None:
    """Adds the pets of a page to those found. Returns the next page, or the same one if it failed."""
    target, after = page
    exchange = await client.send(Request("page of a walk", "GET", target, OK, USES, client.token))
    if exchange.status != 200:
        return page
    pets = check_page(client, exchange, 100, status, after)
    found += pets
    return next_page(exchange, pets)


def next_page(exchange: Exchange, pets: list[dict]) -> tuple[str, int] | None:
    """Returns the target of the next page, and the id after which it begins."""
    link = exchange.response.headers.get("link")
    return ("/v1/pets" + re.fullmatch(r'<(\?[^>]*)>; rel="next"', link)[1], pets[-1]["id"]) if link and pets else None


def check_page(client: Client, exchange: Exchange, limit: int, status: str | None, after: int) -> list[dict]:
    """Returns the pets of a page, which must be in ascending order after an id and have the status, if one is given."""
    pets = parse(exchange.response.body)
    if not isinstance(pets, list) or len(pets) > limit:
        client.violate("list is not an array, or is too long", exchange)
        return []
    last = "link" not in exchange.response.headers
    found = client.load.history.page(pets, after, last, status, exchange.sent, exchange.received)
    client.report(found, exchange)
    for pet in pets:
        if pet["id"] <= after or (status and pet.get("status") != status):
            client.violate("list in a wrong order or with a wrong status", exchange, str(pet))
        after = pet["id"]
    return pets
