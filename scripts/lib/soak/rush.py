"""Busy clients at the beginning of each fault, so that it meets requests in flight."""

import asyncio
import time

from soak.client import Client, Load
from soak.creators import create_request, note_outcome
from soak.readers import list_once

CLIENTS = 16
# Seconds before the fault, and at most into it.
LEAD, OVERLAP = 1.0, 1.0


class Rush:
    """Clients that use one connection to an instance without pauses, until the fault has its effect."""

    def __init__(self, load: Load, instance: str):
        self.load, self.instance = load, instance
        self.latest_end = time.monotonic() + LEAD + OVERLAP
        self.task: asyncio.Future | None = None

    async def start(self) -> None:
        """Returns when the clients are busy."""
        clients = [Client(self.load, f"rush {number}") for number in range(CLIENTS)]
        self.task = asyncio.gather(*(self.keep_busy(client) for client in clients))
        await asyncio.sleep(LEAD)

    async def end(self) -> None:
        await self.task

    async def keep_busy(self, client: Client) -> None:
        """Creates and lists in turn until a create fails, or a response says `Connection: close`."""
        while time.monotonic() < self.latest_end:
            create = self.load.ledger.new()
            exchange = await client.send(create_request(create, client.token), self.instance)
            if not note_outcome(client, create, exchange) or self.instance not in client.connections:
                break
            await list_once(client, self.instance)
            if self.instance not in client.connections:
                break
        client.close()
