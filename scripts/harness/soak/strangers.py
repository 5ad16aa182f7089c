"""Clients that do not read, do not send, or vanish."""

import asyncio
import contextlib
import time

from harness.client import Client
from harness.creators import create_request
from harness.http_client import Connection, Exchange, Request

# Seconds within which the head of a request must arrive, and what the response to it may take longer.
HEAD_TIMEOUT, LATENESS = 5.0, 2.0


async def connect(client: Client, **options) -> Connection:
    """Opens a connection of its own, outside of the records."""
    return await Connection.open(client.load.instances[client.choose()].port, **options)


async def read_slowly(client: Client) -> None:
    """Requests many full pages and reads a few bytes of them at a time, or none."""
    request = Request("", "GET", "/v1/pets?limit=100", frozenset(), frozenset(), client.token).encode()
    while client.load.running:
        with contextlib.suppress(OSError), contextlib.closing(await connect(client, limit=512)) as connection:
            connection.writer.write(request * 20)
            for _ in range(client.rng.randrange(20)):
                await connection.reader.read(256)
                await client.pause(0.2)
        await client.pause(0.5)


async def vanish(client: Client) -> None:
    """Sends the head of a create and a part of the body, waits, and closes the connection."""
    while client.load.running:
        create = client.load.ledger.new(key="vanished" if client.rng.random() < 0.5 else None)
        request = create_request(create, client.token).encode()
        with contextlib.suppress(OSError), contextlib.closing(await connect(client)) as connection:
            connection.writer.write(request[: -client.rng.randrange(1, 30)])
            await client.pause(client.rng.choice((0.01, 0.5, 2)))
        await client.pause(0.5)


async def send_nothing(client: Client) -> None:
    """Opens a connection and sends nothing: it must be closed after HEAD_TIMEOUT."""
    silence = Request("silence", "-", "", frozenset(), frozenset())
    while client.load.running:
        name = client.choose()
        opened = time.monotonic()
        with contextlib.suppress(OSError):
            connection = await Connection.open(client.load.instances[name].port)
            with contextlib.closing(connection), contextlib.suppress(ConnectionError):
                async with asyncio.timeout(HEAD_TIMEOUT + LATENESS):
                    await connection.reader.read()
        exchange = Exchange(silence, name, opened, time.monotonic())
        late = exchange.received - opened >= HEAD_TIMEOUT + LATENESS
        if late and not client.load.journal.concerning(exchange):
            client.violate("silent connection was not closed", exchange)
        await client.pause(0.5)
