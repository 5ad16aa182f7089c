"""What happened when: the faults, the exchanges with their outcomes, and the violations that no fault explains."""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from harness.http_client import Exchange
from harness.rules import violations

# What faults impair.
NOTHING: frozenset[str] = frozenset()
KEYS, READS, CREATES = frozenset({"keys"}), frozenset({"reads"}), frozenset({"creates"})
STORAGE = READS | CREATES
EVERYTHING = KEYS | STORAGE
# Seconds after the end of a fault within which its effects may still be seen: one backoff (1 s) and one attempt to
# connect (2 s).
RECOVERY = 3.0
# A stall of this many seconds and the wait before it can exceed a timeout of two seconds.
LONG_STALL = 1.0
# A request can last this long, so that it may have met a fault that ended before.
RESPONSE_TIMEOUT = 30.0
EXAMPLES = 5  # of each violation


@dataclass
class Fault:
    kind: str
    instances: frozenset[str]
    impairs: frozenset[str]  # what requests may be refused for: keys, reads, creates
    stop: str | None = None  # how the process ends, if it does: kill, term, int
    replaces: bool = False  # the store, so that what a request refers to can be gone
    start: float = field(default_factory=time.monotonic)
    end: float = float("inf")

    def concerns(self, exchange: Exchange) -> bool:
        """Returns true if the fault, or the recovery from it, can be noticed in this exchange."""
        if exchange.instance not in self.instances:
            return False
        return exchange.received >= self.start and exchange.sent <= self.end + RECOVERY


class Journal:
    def __init__(self) -> None:
        self.started = time.monotonic()
        self.faults: list[Fault] = []
        self.outcomes: dict[str, Counter] = defaultdict(Counter)  # by operation
        self.statuses: Counter = Counter()  # by the labels of the metrics and the status
        self.longest = 0.0  # seconds for which a client waited for a response
        self.suspects: list[Exchange] = []  # exchanges that broke a rule when they were recorded
        self.broken: Counter = Counter()  # rules
        self.examples: dict[str, str] = {}  # of violations, by the request id

    def begin(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        return fault

    def concerning(self, exchange: Exchange) -> list[Fault]:
        """The faults that the exchange can have met."""
        return [fault for fault in self.faults if fault.concerns(exchange)]

    def impaired(self, ability: str) -> bool:
        """Returns true during a fault that impairs this."""
        return bool(self.faults) and self.faults[-1].end == float("inf") and ability in self.faults[-1].impairs

    def healthy(self, instance: str) -> bool:
        """Returns true if no fault affects the instance or did so recently."""
        now = time.monotonic()
        return not any(instance in fault.instances and now <= fault.end + RECOVERY for fault in self.faults)

    def record(self, exchange: Exchange) -> None:
        code = f" {exchange.error_code}" if exchange.status == 503 else ""
        self.outcomes[exchange.request.operation][exchange.failure or f"{exchange.status}{code}"] += 1
        if exchange.response:
            self.statuses[*exchange.request.labels, str(exchange.status)] += 1
            self.longest = max(self.longest, exchange.received - exchange.sent)
        # Earlier faults have hardly an effect; `settle` sees all of them.
        recent = [fault for fault in self.faults[-8:] if fault.concerns(exchange)]
        if next(violations(exchange, recent), None):
            self.suspects.append(exchange)

    def settle(self, stalls=(), instances: frozenset[str] = frozenset()) -> None:
        """Judges the suspects again: all faults are known now. While the machine stood still, PING can have been late,
        so that cached API keys expired. A longer stall exceeds the timeouts of the storage, too."""
        for start, end in stalls:
            impairs = KEYS if end - start < LONG_STALL else EVERYTHING
            self.begin(Fault("test machine: stalled for over 100 ms", instances, impairs, start=start, end=end))
        for exchange in self.suspects:
            for rule in violations(exchange, self.concerning(exchange)):
                self.violate(rule, exchange)
        self.suspects.clear()

    def violate(self, rule: str, exchange: Exchange | None = None, detail: str = "") -> None:
        self.broken[rule] += 1
        if self.broken[rule] > EXAMPLES:
            return
        sent, instance, request_id = time.monotonic(), "–", f"none {len(self.examples)}"
        if exchange:
            sent, instance = exchange.sent, exchange.instance
            request_id = exchange.request.headers.get("X-Request-Id", request_id)
            if exchange.response:
                request_id = exchange.response.headers.get("x-request-id", request_id)
            detail = f"{exchange.request.operation} {detail}".strip()
        before = [fault for fault in self.faults if fault.start <= sent]
        latest = max(before, key=lambda fault: fault.start).kind if before else "none"
        self.examples[request_id] = (
            f"{rule}: {detail} on {instance} at {sent - self.started:.1f} s, latest fault: {latest}, "
            f"request id {request_id}"
        )
