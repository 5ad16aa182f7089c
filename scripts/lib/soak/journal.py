"""Counts exchanges, measures latencies without faults, and collects violations."""

import time
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass

from soak.rules import error_code, violations
from soak.timeline import Exchange, Timeline

EXAMPLES = 5  # of each violation


@dataclass
class Violation:
    rule: str
    operation: str
    instance: str
    seconds: float  # since the start
    fault: str
    request_id: str


class Journal:
    def __init__(self, timeline: Timeline):
        self.timeline, self.started = timeline, time.monotonic()
        self.statuses: dict[str, Counter] = defaultdict(Counter)  # by operation
        self.latencies: dict[str, array] = defaultdict(lambda: array("f"))  # by operation, in health, in seconds
        self.suspects: list[Exchange] = []  # exchanges that broke a rule when they were recorded
        self.broken: Counter = Counter()  # rules
        self.examples: list[Violation] = []
        self.announced_closes = 0  # responses with `Connection: close` at graceful stops

    @property
    def requests(self) -> int:
        return sum(counts.total() for counts in self.statuses.values())

    @property
    def violation_count(self) -> int:
        return self.broken.total() + len(self.suspects)

    def record(self, exchange: Exchange) -> None:
        operation = exchange.request.operation
        code = error_code(exchange) if exchange.status == 503 else None
        outcome = exchange.failure or " ".join(filter(None, (str(exchange.status), code)))
        self.statuses[operation][outcome] += 1
        faults = self.timeline.concerning(exchange)
        if next(violations(exchange, faults), None):
            self.suspects.append(exchange)
        if not faults:
            self.latencies[operation].append(exchange.received - exchange.sent)
        for fault in faults:
            self.observe(fault, exchange, outcome)

    def observe(self, fault, exchange: Exchange, outcome: str) -> None:
        """Adds the exchange to what was seen of a fault."""
        if fault.stop in ("term", "int") and exchange.response and exchange.response.closes:
            self.announced_closes += 1
        good = exchange.status in exchange.request.expected
        if not fault.stop and not fault.impairs & exchange.request.uses:
            return
        if exchange.sent <= fault.end:
            fault.seen["good" if good else outcome] += 1
        elif good and fault.first_good is None:
            fault.first_good = exchange.received - fault.end
        if not good:
            fault.last_bad = max(fault.last_bad, exchange.received - fault.end)

    def settle(self) -> None:
        """Judges the suspects again: the timeline is complete now."""
        for exchange in self.suspects:
            for rule in violations(exchange, self.timeline.concerning(exchange)):
                self.violate(rule, exchange)
        self.suspects.clear()

    def violate(self, rule: str, exchange: Exchange | None = None, detail: str = "") -> None:
        self.broken[rule] += 1
        if self.broken[rule] > EXAMPLES:
            return
        time_sent = exchange.sent if exchange else time.monotonic()
        fault = self.timeline.at(time_sent)
        if not exchange:
            self.examples.append(Violation(rule, detail, "", time_sent - self.started, fault, ""))
            return
        request_id = exchange.request.headers.get("X-Request-Id", "")
        if exchange.response:
            request_id = exchange.response.headers.get("x-request-id", request_id)
        operation = f"{exchange.request.operation} {detail}".strip()
        seconds = exchange.sent - self.started
        self.examples.append(Violation(rule, operation, exchange.instance, seconds, fault, request_id))
