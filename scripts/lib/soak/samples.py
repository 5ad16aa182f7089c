"""Memory, descriptors and readiness of the instances, sampled during the load."""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness.http_client import Connection, Exchange, Lost, Request
from harness.journal import Journal
from harness.servers import Instance
from harness.timeline import Timeline

# Every fault can make an instance not ready.
READY = Request("/ready", "GET", "/ready", frozenset({200}), frozenset({"keys", "reads", "creates"}))
# Seconds after the start that are left out: buffers and caches fill.
WARM_UP = 15.0
# Growth from the first quarter to the last that is not a leak: connections of clients come and go.
MEMORY_GROWTH, DESCRIPTOR_GROWTH = 8.0, 16


@dataclass
class Sample:
    seconds: float  # since the start
    pid: int
    memory: float  # RssAnon in MiB
    descriptors: int


def sample(pid: int, seconds: float = 0.0) -> Sample:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Sample(seconds, pid, int(status["RssAnon"].split()[0]) / 1024, descriptors)


async def sample_instance(instance: Instance, timeline: Timeline, samples: list[Sample]) -> None:
    """Takes a sample each second in which no fault affects the instance."""
    start = time.monotonic()
    while True:
        await asyncio.sleep(1)
        if timeline.healthy(instance.name):
            samples.append(sample(instance.pid, time.monotonic() - start))


async def watch_readiness(instance: Instance, timeline: Timeline, journal: Journal) -> None:
    """Follows `/ready`, which must be 200 unless a fault explains another result."""
    while True:
        sent = time.monotonic()
        exchange = Exchange(READY, instance.name, sent, sent)
        try:
            async with asyncio.timeout(2):
                connection = await Connection.open(instance.management_port)
                with contextlib.closing(connection):
                    exchange.response = await connection.exchange(READY)
        except (OSError, Lost, TimeoutError):
            exchange.failure = "lost"
        exchange.received = time.monotonic()
        instance.ready = exchange.status == 200
        if not instance.ready and not timeline.concerning(exchange):
            journal.suspects.append(exchange)
        await asyncio.sleep(0.2)


@dataclass
class Trend:
    """Medians of the first and the last quarter of the samples in health."""

    count: int
    memory: tuple[float, float]
    descriptors: tuple[float, float]
    idle_descriptors: tuple[int, int]  # before the first client and after the last one
    same_process: bool  # otherwise the figures cannot be compared

    def rows(self) -> list[tuple[str, str, str]]:
        numbers = {
            "RssAnon, MiB": self.memory, "descriptors": self.descriptors,
            "descriptors without clients, before and after the load": self.idle_descriptors,
        }
        return [(name, f"{early:.1f}", f"{late:.1f}") for name, (early, late) in numbers.items()]

    def problems(self) -> list[str]:
        limits = (MEMORY_GROWTH + self.memory[0] / 10, DESCRIPTOR_GROWTH, 2)
        pairs = (self.memory, self.descriptors, self.idle_descriptors)
        grown = [late - early > limit for (early, late), limit in zip(pairs, limits)]
        if not self.same_process:
            return []
        return ["A grew: " + ", ".join(row) for row, wrong in zip(self.rows(), grown) if wrong]


def trend(samples: list[Sample], idle_descriptors: tuple[int, int]) -> Trend:
    late = [sample for sample in samples if sample.seconds > WARM_UP] or samples
    quarter = max(1, len(late) // 4)

    def medians(name: str) -> tuple[float, float]:
        values = [getattr(sample, name) for sample in late]
        return median(values[:quarter]), median(values[-quarter:])

    same_process = len({sample.pid for sample in samples}) == 1
    return Trend(len(late), medians("memory"), medians("descriptors"), idle_descriptors, same_process)
