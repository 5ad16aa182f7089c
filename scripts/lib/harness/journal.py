"""Counts exchanges, and collects violations."""

import time
from collections import Counter, defaultdict

from harness.http_client import Exchange
from harness.rules import violations
from harness.timeline import Timeline

EXAMPLES = 5  # of each violation


class Journal:
    def __init__(self, timeline: Timeline):
        self.timeline, self.started = timeline, time.monotonic()
        self.outcomes: dict[str, Counter] = defaultdict(Counter)  # by operation
        self.statuses: Counter = Counter()  # by the labels of the metrics and the status
        self.longest = 0.0  # seconds for which a client waited for a response
        self.suspects: list[Exchange] = []  # exchanges that broke a rule when they were recorded
        self.broken: Counter = Counter()  # rules
        self.examples: dict[str, str] = {}  # of violations, by the request id
        self.closes = 0  # responses with `Connection: close`

    @property
    def requests(self) -> int:
        return sum(counts.total() for counts in self.outcomes.values())

    @property
    def violation_count(self) -> int:
        return self.broken.total() + len(self.suspects)

    def problems(self) -> list[str]:
        return [f"{rule}: {count:,}" for rule, count in self.broken.most_common()]

    def record(self, exchange: Exchange) -> None:
        operation = exchange.request.operation
        code = exchange.error_code if exchange.status == 503 else None
        outcome = exchange.failure or " ".join(filter(None, (str(exchange.status), code)))
        self.outcomes[operation][outcome] += 1
        if exchange.response:
            self.statuses[*exchange.request.labels, str(exchange.status)] += 1
            self.longest = max(self.longest, exchange.received - exchange.sent)
        self.closes += bool(exchange.response and exchange.response.closes)
        faults = self.timeline.concerning(exchange)
        if next(violations(exchange, faults), None):
            self.suspects.append(exchange)
        for fault in faults:
            fault.observe(exchange, outcome)

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
        sent, instance, request_id = time.monotonic(), "–", f"none {len(self.examples)}"
        if exchange:
            sent, instance = exchange.sent, exchange.instance
            request_id = exchange.request.headers.get("X-Request-Id", request_id)
            if exchange.response:
                request_id = exchange.response.headers.get("x-request-id", request_id)
            detail = f"{exchange.request.operation} {detail}".strip()
        self.examples[request_id] = (
            f"{rule}: {detail} on {instance} at {sent - self.started:.1f} s, latest fault: {self.timeline.at(sent)}, "
            f"request id {request_id}"
        )
