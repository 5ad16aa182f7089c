"""Busy clients at a graceful stop: each keeps one connection in use without pauses until it must close it."""

import asyncio

from soak.client import Client, Load
from soak.creators import create_request, note_outcome
from soak.readers import list_once

CLIENTS = 16
# Seconds before the signal.
LEAD = 1.0


async def start_rush(load: Load, instance: str) -> asyncio.Task:
    """Returns the task of the clients when they are busy."""
    clients = [Client(load, f"rush {number}") for number in range(CLIENTS)]
    rush = asyncio.ensure_future(asyncio.gather(*(keep_busy(client, instance) for client in clients)))
    await asyncio.sleep(LEAD)
    return rush


async def keep_busy(client: Client, instance: str) -> None:
    """Creates and lists in turn, until a response says `Connection: close` or the connection ends."""
    while True:
        create = client.load.ledger.new()
        note_outcome(client, create, await client.send(create_request(create, client.token), instance))
        if instance not in client.connections:
            return
        await list_once(client, instance)
        if instance not in client.connections:
            return
