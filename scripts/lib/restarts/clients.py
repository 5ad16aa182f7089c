"""The clients of a run: creators without and with an `Idempotency-Key`, and readers of lists."""

import asyncio
import contextlib
import itertools
import random
import time
import uuid

from restarts.load import Client, Load
from soak.creators import create_request
from soak.http_client import Request, Response
from soak.ledger import Create
from soak.rules import parse

# Seconds after the end of the load within which each create with a key must get its 201.
RESOLUTION = 15.0


def acknowledge(client: Client, create: Create, response: Response) -> None:
    """Enters a 201 into the ledger."""
    pet = parse(response.body)
    if pet | {"id": 0} != create.members() | {"id": 0}:
        client.load.fail("create", "201 with another pet", create.name)
    elif not client.load.ledger.acknowledge(create, pet["id"]):
        client.load.fail("create with key", "two ids for one Idempotency-Key", create.name)


async def create_without_key(client: Client) -> None:
    """Sends each create once."""
    while not client.load.ending:
        create = client.load.ledger.new()
        if response := await client.send(create_request(create, client.load.token)):
            acknowledge(client, create, response)
        else:
            create.uncertain = True
        await client.pause()


async def create_with_key(client: Client) -> None:
    """Sends each create until its 201, and some of them once more."""
    load, end = client.load, None
    while not load.ending:
        create = load.ledger.new(key=str(uuid.uuid4()))
        request = create_request(create, load.token, operation="create with key")
        while not (response := await client.send(request)):
            end = end or (time.monotonic() + RESOLUTION if load.ending else None)
            if end and time.monotonic() > end:
                create.uncertain = True
                return
            await asyncio.sleep(0.1)
        acknowledge(client, create, response)
        if random.random() < 0.1:
            await client.pause()
            if response := await client.send(create_request(create, load.token, operation="replay")):
                acknowledge(client, create, response)
        await client.pause()


async def list_pets(client: Client) -> None:
    while not client.load.ending:
        target = f"/v1/pets?limit={random.choice((1, 20, 100))}"
        await client.send(Request("list", "GET", target, frozenset({200}), frozenset(), client.load.token))
        await client.pause()


# Of eight connections, four create without a key, three with one, and one reads lists.
KINDS = (create_without_key, create_with_key, create_without_key, create_with_key,
         create_without_key, create_with_key, create_without_key, list_pets)


@contextlib.asynccontextmanager
async def running(load: Load, connections: int):
    """Runs the clients while the block runs, and then until each has finished what it was doing."""
    clients = [Client(load) for _ in range(connections)]
    load.started = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for kind, client in zip(itertools.cycle(KINDS), clients):
            tasks.create_task(kind(client))
        try:
            yield
        finally:
            load.ending = True
    load.ended = time.monotonic()
    for client in clients:
        client.close()
