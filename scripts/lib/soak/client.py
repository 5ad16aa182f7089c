"""A client with one keep-alive connection to each instance, as behind a load balancer that honours `/ready`."""

import asyncio
import itertools
import random
import time
from dataclasses import dataclass

from soak.history import History, Violation
from soak.http_client import Connection, Lost, Request
from soak.instances import Instance
from soak.journal import Journal
from soak.ledger import Ledger
from soak.timeline import RESPONSE_TIMEOUT, Exchange, Timeline

request_numbers = itertools.count()


@dataclass
class Load:
    """What all clients share."""

    instances: dict[str, Instance]
    timeline: Timeline
    journal: Journal
    ledger: Ledger
    history: History
    tokens: list[str]  # of keys that are valid to the end
    reader_token: str  # of a key with the scope `read`
    end: float  # monotonic time at which clients stop
    walks: int = 0
    longest_acceptance: float = 0.0  # seconds for which a revoked key was accepted

    @property
    def running(self) -> bool:
        return time.monotonic() < self.end


class Client:
    def __init__(self, load: Load, seed: str):
        self.load, self.rng = load, random.Random(seed)
        self.token = self.rng.choice(load.tokens)
        self.connections: dict[str, Connection] = {}

    async def pause(self, seconds: float) -> None:
        """Waits for a random time with this mean."""
        await asyncio.sleep(self.rng.uniform(0.5, 1.5) * seconds)

    def choose(self) -> str:
        """An instance to send to. A new connection goes to an instance that is ready, if there is one."""
        name = self.rng.choice(list(self.load.instances))
        connection = self.connections.get(name)
        if connection and not connection.has_ended():
            return name
        ready = [other for other, instance in self.load.instances.items() if instance.ready]
        return name if name in ready or not ready else ready[0]

    async def send(self, request: Request, name: str | None = None) -> Exchange:
        """Sends a request to an instance and records the exchange."""
        name = name or self.choose()
        if self.rng.random() < 0.8:
            request.headers["X-Request-Id"] = f"soak-{next(request_numbers)}"
        connection = self.connections.pop(name, None)
        if connection and connection.has_ended():  # nothing is lost: the request goes to a new connection
            connection.close()
            connection = None
        exchange = await self.exchange(request, name, connection)
        self.load.journal.record(exchange)
        return exchange

    async def exchange(self, request: Request, name: str, connection: Connection | None) -> Exchange:
        sent = time.monotonic()
        exchange = Exchange(request, name, sent, sent)
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                connection = connection or await Connection.open(self.load.instances[name].port)
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
        if exchange.response and not exchange.response.closes:
            self.connections[name] = connection
        elif connection:
            connection.close()
        return exchange

    def violate(self, rule: str, exchange: Exchange, detail: str = "") -> None:
        self.load.journal.violate(rule, exchange, detail)

    def report(self, violations: list[Violation], exchange: Exchange) -> None:
        """Records the violations that the history found."""
        for rule, pet in violations:
            self.violate(rule, exchange, pet)

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()
