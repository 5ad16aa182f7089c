"""What all clients share, and a client with one keep-alive connection that honours `Connection: close`."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from soak.http_client import Connection, Lost, Request, Response
from soak.ledger import Ledger
from soak.rules import parse

# Seconds within which a response must arrive.
RESPONSE_TIMEOUT = 30.0
# Seconds after which a client does not use an idle connection again: less than `shutdown.idle_grace`, within which the
# service closes no connection.
MAX_IDLE = 0.5
# Mean of the pauses between two requests of a client, in seconds.
PAUSE = 0.05
EXAMPLES = 5
HOST = "shop.example"


@dataclass
class Load:
    open_connection: Callable[[], Awaitable[Connection]]
    token: str
    ledger: Ledger = field(default_factory=lambda: Ledger(random.Random(1)))
    started: float = field(default_factory=time.monotonic)
    requests: Counter = field(default_factory=Counter)  # by operation
    failures: Counter = field(default_factory=Counter)  # by operation and outcome
    examples: list[str] = field(default_factory=list)  # of failures
    closes: int = 0  # responses with `Connection: close`
    longest_wait: float = 0.0  # seconds from a request to its response, a new connection included
    ending: bool = False
    ended: float = 0.0

    def fail(self, operation: str, outcome: str, detail: str = "") -> None:
        self.failures[f"{operation}: {outcome}"] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{time.monotonic() - self.started:.2f} s: {operation}: {outcome} {detail}".strip())


class Client:
    def __init__(self, load: Load):
        self.load = load
        self.connection: Connection | None = None

    async def send(self, request: Request) -> Response | None:
        """Sends a request once. Returns None if it failed, which the load records."""
        load, began, new = self.load, time.monotonic(), False
        connection, self.connection = self.connection, None
        if connection and (connection.has_ended() or began - connection.last_used > MAX_IDLE):
            connection.close()
            connection = None
        request.headers["Host"] = HOST
        response, outcome = None, ""
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                if not connection:
                    connection, new = await load.open_connection(), True
                response = await connection.exchange(request)
        except TimeoutError:
            outcome = "no response in time"
        except Lost as error:
            outcome = f"connection lost ({error})"
        except OSError as error:
            outcome = f"connection refused ({error!r})"
        load.requests[request.operation] += 1
        load.longest_wait = max(load.longest_wait, time.monotonic() - began)
        if response and response.status not in request.expected:
            code = (parse(response.body) or {}).get("code", "of the proxy")
            outcome = f"status {response.status} {code}"
        elif response and "x-request-id" not in response.headers:
            outcome = "the response is not from the service"
        if outcome:
            load.fail(request.operation, outcome, "on a new connection" if new else "on a connection that was in use")
        if response and not response.closes:
            self.connection = connection
        elif connection:
            load.closes += bool(response)
            connection.close()
        return None if outcome else response

    async def pause(self) -> None:
        await asyncio.sleep(min(random.expovariate(1 / PAUSE), MAX_IDLE))

    def close(self) -> None:
        if self.connection:
            self.connection.close()
