"""Memory, descriptors and readiness of the instances, sampled during the load."""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import readers
from harness.client import Client, Load
from harness.http_client import Connection, Exchange, Lost, Request
from harness.service import Instance

# Every fault can make an instance not ready.
READY = Request("/ready", "GET", "/ready", frozenset({200}), frozenset({"keys", "reads", "creates"}))
# Seconds after the start that are left out: buffers and caches fill.
WARM_UP = 15.0
# Growth from the first quarter to the last that is not a leak: connections of clients come and go.
MEMORY_GROWTH, DESCRIPTOR_GROWTH, IDLE_DESCRIPTOR_GROWTH = 8.0, 16, 2


@dataclass
class Sample:
    seconds: float  # since the start of the load
    pid: int
    memory: float  # RssAnon in MiB
    descriptors: int


class Resources:
    """The memory and the descriptors of an instance."""

    def __init__(self, instance: Instance, load: Load):
        self.instance, self.load = instance, load
        self.samples: list[Sample] = []
        self.idle = 0  # descriptors before the first client

    def sample(self) -> Sample:
        process = Path(f"/proc/{self.instance.pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        memory, descriptors = int(status["RssAnon"].split()[0]) / 1024, len(list((process / "fd").iterdir()))
        return Sample(time.monotonic() - self.load.journal.started, self.instance.pid, memory, descriptors)

    async def warm_up(self) -> None:
        """Lets each worker open its connections to the storage, and counts the descriptors without clients."""
        for number in range(20):
            client = Client(self.load, f"warm-up {number}")
            await readers.list_once(client, self.instance.name)
            client.close()
        await asyncio.sleep(1)
        self.idle = self.sample().descriptors

    async def watch(self) -> None:
        """Takes a sample each second in which no fault affects the instance."""
        while True:
            await asyncio.sleep(1)
            if self.load.journal.healthy(self.instance.name):
                self.samples.append(self.sample())

    async def growth(self) -> tuple[dict[str, str], list[str]]:
        """Returns figures of the first and the last quarter, and those that grew too much. The clients have gone."""
        for _ in range(50):
            if (left := self.sample().descriptors) <= self.idle:
                break
            await asyncio.sleep(0.2)
        late = [each for each in self.samples if each.seconds > WARM_UP] or self.samples
        quarter = max(1, len(late) // 4)
        pairs = [("descriptors of A without clients", self.idle, left, IDLE_DESCRIPTOR_GROWTH)]
        for name, field, limit in (("RssAnon of A, MiB", "memory", MEMORY_GROWTH), ("descriptors of A", "descriptors", DESCRIPTOR_GROWTH)):
            values = [getattr(each, field) for each in late]
            first, last = median(values[:quarter]), median(values[-quarter:])
            pairs.append((name, first, last, limit + (first / 10 if field == "memory" else 0)))
        figures = {name: f"{first:.1f} to {last:.1f}" for name, first, last, _ in pairs}
        grown = [f"{name} grew: {figures[name]}" for name, first, last, limit in pairs if last - first > limit]
        # Figures of two processes cannot be compared.
        return figures, grown if len({each.pid for each in self.samples}) == 1 else []


async def watch_readiness(instance: Instance, load: Load) -> None:
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
        if not instance.ready and not load.journal.concerning(exchange):
            load.journal.suspects.append(exchange)
        await asyncio.sleep(0.2)
