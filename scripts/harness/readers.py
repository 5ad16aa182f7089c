"""Clients that read: acknowledged pets on every instance, the newest pets, lists, and walks over all pages."""

import asyncio
import re

from harness.client import Client, Load
from harness.history import STATUSES
from harness.http_client import Exchange, Request, parse
from harness.journal import KEYS, READS

USES = KEYS | READS
OK = frozenset({200})
ALL = "/v1/pets?limit=100"
FINAL_TIMEOUT = 300.0


async def get_pets(client: Client) -> None:
    """Gets pets that got a 201, the newest pets, and those that are about to be created."""
    while client.load.running:
        if (pets := client.load.ledger.acknowledged) and client.rng.random() < 0.7:
            await get(client, client.rng.choice(pets).id, OK)
        else:
            identity = client.load.history.newest + client.rng.randint(-3, 3)
            await get(client, max(1, identity), frozenset({200, 404}))
        await client.pause(0.03)


async def get(client: Client, identity: int, expected: frozenset) -> None:
    request = Request("get", "GET", f"/v1/pets/{identity}", expected, USES, client.token)
    exchange = await client.send(request)
    if exchange.status not in (200, 404):
        return
    pet = parse(exchange.response.body) if exchange.status == 200 else None
    client.report(client.load.history.read(identity, pet, exchange.sent, exchange.received), exchange)
    if pet and "sunset" not in exchange.response.headers:
        client.load.journal.violate("get without Sunset", exchange)


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
    """Follows `Link` from the first page to the last, through all faults, and then requests the last page, or its
    successor once it is full, again and again for a random time."""
    while client.load.running:
        status, page, repetitions = client.rng.choice((None, *STATUSES)), None, client.rng.randrange(200)
        following = ALL + (f"&status={status}" if status else ""), 0
        while client.load.running and (following or repetitions):
            page, repetitions = (following, repetitions) if following else (page, repetitions - 1)
            following = await read_page(client, page, status)
            await client.pause(0.05)


async def read_all(load: Load) -> int:
    """Compares the history with all pages of each instance, after the load. Returns the number of pages."""
    client, pages = Client(load, "end"), 0
    async with asyncio.timeout(FINAL_TIMEOUT):
        for instance in load.instances:
            page = ALL, 0
            while page:
                pages += 1
                page = await read_page(client, page, None, instance)
    client.close()
    return pages


async def read_page(
    client: Client, page: tuple[str, int], status: str | None, instance: str | None = None
) -> tuple[str, int] | None:
    """Gets a page: a target, and the id after which it begins. Returns the next one, or the same one if it failed."""
    target, after = page
    exchange = await client.send(Request("page of a walk", "GET", target, OK, USES, client.token), instance)
    if exchange.status != 200:
        return page
    pets, link = check_page(client, exchange, 100, status, after), exchange.response.headers.get("link")
    return ("/v1/pets" + re.fullmatch(r'<(\?[^>]*)>; rel="next"', link)[1], pets[-1]["id"]) if link and pets else None


def check_page(client: Client, exchange: Exchange, limit: int, status: str | None, after: int) -> list[dict]:
    """Returns the pets of a page, which must be in ascending order after an id and have the status, if one is given."""
    pets = parse(exchange.response.body)
    if not isinstance(pets, list) or len(pets) > limit:
        client.load.journal.violate("list is not an array, or is too long", exchange)
        return []
    last = "link" not in exchange.response.headers
    found = client.load.history.page(pets, after, last, status, exchange.sent, exchange.received)
    client.report(found, exchange)
    if exchange.sent < client.load.history.since:
        return pets  # of a store that was being replaced: rows and indexes can be those of different files
    for pet in pets:
        if pet["id"] <= after or (status and pet.get("status") != status):
            client.load.journal.violate("list in a wrong order or with a wrong status", exchange, str(pet))
        after = pet["id"]
    return pets
