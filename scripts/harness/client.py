"""A client with one keep-alive connection to each instance, as behind a load balancer that honours `/ready`."""

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable

from harness.history import History, Ledger, Violation
from harness.http_client import Connection, Exchange, Lost, Request
from harness.journal import RESPONSE_TIMEOUT, Journal
from harness.servers import Server
from harness.service import KeyCommands

request_numbers = itertools.count()


class Load:
    """What all clients share."""

    max_idle = math.inf  # seconds after which a client does not use an idle connection again
    end = math.inf  # monotonic time at which clients stop
    longest_acceptance = 0.0  # seconds for which a revoked key was accepted
    revocations = 0  # that were judged
    avoided = frozenset()  # instances that clients do not choose

    def __init__(
        self, instances: dict[str, Server], commands: KeyCommands, tokens: list[str], reader_token: str, seed: int
    ):
        self.instances, self.commands, self.seed = instances, commands, seed
        self.tokens, self.reader_token = tokens, reader_token  # the latter has the scope `read`
        self.journal = Journal()
        self.ledger = Ledger(random.Random(seed))
        self.history = History(self.ledger.creates)

    @property
    def running(self) -> bool:
        return time.monotonic() < self.end


class Client:
    def __init__(self, load: Load, name: str):
        self.load, self.name, self.rng = load, name, random.Random(f"{load.seed} {name}")
        self.token = self.rng.choice(load.tokens)
        self.connections: dict[str, Connection] = {}

    async def pause(self, seconds: float) -> None:
        """Waits for a random time with this mean."""
        await asyncio.sleep(self.rng.uniform(0.5, 1.5) * seconds)

    def choose(self) -> str:
        """An instance to send to. A new connection goes to an instance that is ready, if there is one."""
        name = self.rng.choice([name for name in self.load.instances if name not in self.load.avoided])
        connection = self.connections.get(name)
        if connection and not connection.has_ended():
            return name
        ready = [other for other, instance in self.load.instances.items() if instance.ready]
        return name if name in ready or not ready else ready[0]

    async def send(self, request: Request, name: str | None = None) -> Exchange:
        """Sends a request to an instance and records the exchange."""
        name = name or self.choose()
        if self.rng.random() < 0.8:
            request.headers["X-Request-Id"] = f"{self.load.ledger.run}-{next(request_numbers)}"
        connection = self.connections.pop(name, None)
        idle = time.monotonic() - connection.last_used if connection else 0
        if connection and (connection.has_ended() or idle > self.load.max_idle):
            connection.close()  # nothing is lost: the request goes to a new connection
            connection = None
        exchange = Exchange(request, name)
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                connection = connection or await self.load.instances[name].connect()
                exchange.first = connection.last_used is None
                exchange.sent = time.monotonic()
                exchange.idle = 0.0 if exchange.first else exchange.sent - connection.last_used
                if request.create:
                    self.load.history.attempt(request.create, exchange.sent)
                exchange.response = await connection.exchange(request)
        except TimeoutError:
            exchange.failure = "silent"
        except Lost:
            exchange.failure = "lost"
        except OSError:
            exchange.failure = "refused"
        exchange.received = time.monotonic()
        reusable = exchange.response and exchange.response.headers.get("connection", "").lower() != "close"
        if reusable and not request.raw and name not in self.connections:
            self.connections[name] = connection
        elif connection:
            connection.close()
        self.load.journal.record(exchange)
        return exchange

    def report(self, violations: list[Violation], exchange: Exchange) -> None:
        """Records the violations that the history found."""
        for rule, pet in violations:
            self.load.journal.violate(rule, exchange, pet)

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


Behaviour = Callable[[Client], Awaitable[None]]


@contextlib.asynccontextmanager
async def clients(load: Load, behaviours: dict[Behaviour, int]):
    """Runs clients, so many of each kind, while the block runs, and then until each has finished what it was doing."""
    started = []
    async with asyncio.TaskGroup() as tasks:
        for behaviour, count in behaviours.items():
            for number in range(count):
                started.append(Client(load, f"{behaviour.__name__} {number}"))
                tasks.create_task(behaviour(started[-1]))
        try:
            yield
        finally:
            load.end = min(load.end, time.monotonic())
    for client in started:
        client.close()
