"""Clients of the soak: one whose API keys are revoked, and some that do not read, or vanish."""

import asyncio
import contextlib
import time
import uuid

from harness import readers
from harness.client import Client
from harness.creators import create_request
from harness.http_client import Request
from harness.servers import CommandError

LISTED, EITHER, REFUSED = frozenset({200}), frozenset({200, 401}), frozenset({401})
# The default of `keys.redis.lease` in seconds: the longest time for which a revoked key is accepted.
LEASE = 0.6
# Greatest number of seconds after which a new key is accepted on a machine that stalls, and the seconds for which a
# revoked key is sent.
ACCEPTANCE = 30.0
AFTERWARDS = 2.0


async def revoke_keys(client: Client) -> None:
    """Issues a key, uses it on all instances, revokes it, and measures how long it is accepted."""
    commands, journal = client.load.commands, client.load.journal
    while client.load.running:
        if journal.impaired("keys"):
            await client.pause(0.2)
            continue
        label, faults = f"revoked-{uuid.uuid4()}", len(journal.faults)
        try:
            token = await commands.create(label)
            key = await commands.find(label)
        except CommandError:  # the storage of the keys is unavailable
            await client.pause(1)
            continue
        await use_until_accepted(client, token, faults)
        # In a fault, an instance can notice a key late, and a command can create it in another file.
        if len(journal.faults) > faults:
            continue
        await use_until_fault(client, token)
        revocation = asyncio.create_task(commands.revoke(key))
        try:
            await probe(client, token, revocation)
            client.load.revocations += revocation.done()
        finally:
            revocation.cancel()
        await client.pause(2)


async def use_until_accepted(client: Client, token: str, faults: int) -> None:
    """Uses a new key on each instance until it is accepted, a fault begins, or the wait is too long."""
    load, end = client.load, time.monotonic() + ACCEPTANCE
    for name in load.instances:
        while len(load.journal.faults) == faults and time.monotonic() < end:
            if (await client.send(list_request(token, EITHER), name)).status == 200:
                break
            await client.pause(0.05)


async def use_until_fault(client: Client, token: str) -> None:
    """Uses a key on all instances until a fault of the keys begins, or for a random time."""
    load, end, since = client.load, time.monotonic() + client.rng.uniform(0, 10), client.load.history.since
    while True:
        for name in load.instances:
            await client.send(list_request(token, LISTED), name)
        # A store that was replaced does not have the key.
        if time.monotonic() > end or load.journal.impaired("keys") or load.history.since != since:
            return
        await client.pause(0.1)


async def probe(client: Client, token: str, revocation: asyncio.Task) -> None:
    """Sends a token to all instances while it is revoked and afterwards."""
    load, end = client.load, time.monotonic() + 60
    while (now := time.monotonic()) < end:
        expected = EITHER
        if revocation.done():
            end = min(end, revocation.result() + AFTERWARDS)
            expected = REFUSED if now > revocation.result() + LEASE else EITHER
        requests = (client.send(list_request(token, expected), name) for name in load.instances)
        for exchange in await asyncio.gather(*requests):
            if revocation.done() and exchange.status == 200:
                load.longest_acceptance = max(load.longest_acceptance, exchange.sent - revocation.result())
        await client.pause(0.03)


def list_request(token: str, expected: frozenset) -> Request:
    return Request("list with a revoked key", "GET", "/v1/pets?limit=1", expected, readers.USES, token)


async def read_slowly(client: Client) -> None:
    """Requests many full pages and reads a few bytes of them at a time, or none."""
    request = Request("", "GET", "/v1/pets?limit=100", frozenset(), frozenset(), client.token).encode()
    while client.load.running:
        instance = client.load.instances[client.choose()]
        with contextlib.suppress(OSError), contextlib.closing(await instance.connect(limit=512)) as connection:
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
        instance = client.load.instances[client.choose()]
        with contextlib.suppress(OSError), contextlib.closing(await instance.connect()) as connection:
            connection.writer.write(request[: -client.rng.randrange(1, 30)])
            await client.pause(client.rng.choice((0.01, 0.5, 2)))
        await client.pause(0.5)
