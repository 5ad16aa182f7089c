"""Memory, descriptors and readiness of the instances, sampled during the load."""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from soak.http_client import Connection, Lost, Request
from soak.instances import Instance
from soak.journal import Journal
from soak.timeline import Exchange, Timeline

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
    resident: float  # VmRSS in MiB
    descriptors: int


def sample(pid: int, seconds: float = 0.0) -> Sample:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    anonymous, resident = (int(status[name].split()[0]) / 1024 for name in ("RssAnon", "VmRSS"))
    return Sample(seconds, pid, anonymous, resident, len(list(Path(f"/proc/{pid}/fd").iterdir())))


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
    resident: tuple[float, float]
    descriptors: tuple[float, float]
    idle_descriptors: tuple[int, int]  # before the first client and after the last one

    def problems(self) -> list[str]:
        found = []
        if self.memory[1] - self.memory[0] > MEMORY_GROWTH + self.memory[0] / 10:
            found.append("memory of A grew from {:.1f} to {:.1f} MiB".format(*self.memory))
        if self.descriptors[1] - self.descriptors[0] > DESCRIPTOR_GROWTH:
            found.append("descriptors of A grew from {:.0f} to {:.0f}".format(*self.descriptors))
        if self.idle_descriptors[1] - self.idle_descriptors[0] > 2:
            found.append("descriptors of A without clients grew from {} to {}".format(*self.idle_descriptors))
        return found


def trend(samples: list[Sample], idle_descriptors: tuple[int, int]) -> Trend:
    late = [sample for sample in samples if sample.seconds > WARM_UP] or samples
    quarter = max(1, len(late) // 4)

    def medians(name: str) -> tuple[float, float]:
        values = [getattr(sample, name) for sample in late]
        return median(values[:quarter]), median(values[-quarter:])

    return Trend(len(late), medians("memory"), medians("resident"), medians("descriptors"), idle_descriptors)
