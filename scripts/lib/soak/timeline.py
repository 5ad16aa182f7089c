"""What happened when: the faults, and each exchange of a client with an instance."""

import time
from collections import Counter
from dataclasses import dataclass, field

from soak.http_client import Request, Response

# Seconds after the end of a fault within which its effects may still be seen: one backoff (1 s) and one attempt to
# connect (2 s).
RECOVERY = 3.0
# A request can last this long, so that it may have met a fault that ended before.
RESPONSE_TIMEOUT = 30.0

# The time before a fault in which the load is high. It excuses nothing.
LEAD_IN = "lead-in"


@dataclass
class FaultRecord:
    kind: str
    instances: frozenset[str]
    impairs: frozenset[str]  # what requests may be refused for: keys, reads, creates
    stop: str | None  # how the process ends, if it does: kill, term, int
    start: float
    end: float = float("inf")
    seen: Counter = field(default_factory=Counter)
    first_good: float | None = None  # seconds from the end to the first good response to a request sent after it
    last_bad: float = 0.0  # seconds from the end to the last response that the fault explains

    def concerns(self, exchange: "Exchange") -> bool:
        """Returns true if the fault, or the recovery from it, can be noticed in this exchange."""
        if exchange.instance not in self.instances:
            return False
        return exchange.received >= self.start and exchange.sent <= self.end + RECOVERY


@dataclass
class Exchange:
    """A request and what came of it. Without a response, `failure` is `refused` (nothing was sent), `lost` (the
    connection ended) or `silent` (no response within the timeout)."""

    request: Request
    instance: str
    sent: float
    received: float
    response: Response | None = None
    failure: str | None = None
    first: bool = True  # on its connection
    idle: float = 0.0  # seconds since the previous response on the connection

    @property
    def status(self) -> int | None:
        return self.response.status if self.response else None


class Timeline:
    def __init__(self) -> None:
        self.faults: list[FaultRecord] = []

    def begin(self, fault: FaultRecord) -> FaultRecord:
        self.faults.append(fault)
        return fault

    def add_stalls(self, stalls: list[tuple[float, float]]) -> None:
        """Adds the times at which the machine stood still: PING can be late then, and cached API keys expire."""
        for start, end in stalls:
            kind, everywhere = "test machine: stalled for over 100 ms", frozenset("AB")
            self.faults.append(FaultRecord(kind, everywhere, frozenset({"keys"}), None, start, end))
        self.faults.sort(key=lambda fault: fault.start)

    @property
    def real_faults(self) -> list[FaultRecord]:
        return [fault for fault in self.faults if fault.kind != LEAD_IN]

    def at(self, seconds: float) -> str:
        """The kind of the latest fault that began before this time."""
        return next((fault.kind for fault in reversed(self.real_faults) if fault.start <= seconds), "none")

    def concerning(self, exchange: Exchange) -> list[FaultRecord]:
        """The faults that the exchange can have met, latest first."""
        found = []
        for fault in reversed(self.faults):
            if fault.end + RECOVERY + RESPONSE_TIMEOUT < exchange.sent:
                break
            if fault.concerns(exchange):
                found.append(fault)
        return found

    def impaired(self, ability: str) -> bool:
        """Returns true during a fault that impairs this."""
        return bool(self.faults) and self.faults[-1].end == float("inf") and ability in self.faults[-1].impairs

    def healthy(self, instance: str) -> bool:
        """Returns true if no fault affects the instance or did so recently."""
        now = time.monotonic()
        return not any(instance in fault.instances and now <= fault.end + RECOVERY for fault in self.faults[-6:])
