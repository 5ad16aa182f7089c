"""What happened when: the faults, and which exchanges they explain."""

import time
from collections import Counter
from dataclasses import dataclass, field

from harness.http_client import Exchange

# Seconds after the end of a fault within which its effects may still be seen: one backoff (1 s) and one attempt to
# connect (2 s).
RECOVERY = 3.0
# A request can last this long, so that it may have met a fault that ended before.
RESPONSE_TIMEOUT = 30.0


@dataclass
class Fault:
    kind: str
    instances: frozenset[str]
    impairs: frozenset[str]  # what requests may be refused for: keys, reads, creates
    stop: str | None = None  # how the process ends, if it does: kill, term, int
    start: float = field(default_factory=time.monotonic)
    end: float = float("inf")
    seen: Counter = field(default_factory=Counter)
    last_bad: float = 0.0  # seconds from the end to the last response that the fault explains

    def concerns(self, exchange: Exchange) -> bool:
        """Returns true if the fault, or the recovery from it, can be noticed in this exchange."""
        if exchange.instance not in self.instances:
            return False
        return exchange.received >= self.start and exchange.sent <= self.end + RECOVERY

    def observe(self, exchange: Exchange, outcome: str) -> None:
        """Adds the exchange to what was seen of the fault."""
        good = exchange.status in exchange.request.expected
        if not self.stop and not self.impairs & exchange.request.uses:
            return
        if exchange.sent <= self.end:
            self.seen["good" if good else outcome] += 1
        if not good:
            self.last_bad = max(self.last_bad, exchange.received - self.end)


class Timeline:
    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def begin(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        return fault

    def add_stalls(self, stalls: list[tuple[float, float]], instances: frozenset[str]) -> None:
        """Adds the times at which the machine stood still: PING can be late then, and cached API keys expire."""
        for start, end in stalls:
            kind = "test machine: stalled for over 100 ms"
            self.faults.append(Fault(kind, instances, frozenset({"keys"}), None, start, end))
        self.faults.sort(key=lambda fault: fault.start)

    def at(self, seconds: float) -> str:
        """The kind of the latest fault that began before this time."""
        return next((fault.kind for fault in reversed(self.faults) if fault.start <= seconds), "none")

    def concerning(self, exchange: Exchange) -> list[Fault]:
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
