"""Memory, descriptors and readiness of the instances, sampled during the load."""

import asyncio
import contextlib
import time
from pathlib import Path
from statistics import median

from harness import readers
from harness.client import Client, Load
from harness.http_client import Connection, Exchange, Lost, Request
from harness.journal import EVERYTHING
from harness.service import Instance

# Every fault can make an instance not ready.
READY = Request("/ready", "GET", "/ready", frozenset({200}), EVERYTHING)
# Longer than the service waits for its storage, 2 s, and for a busy CPU.
READY_TIMEOUT = 10.0
# Seconds after the start that are left out: buffers and caches fill.
WARM_UP = 15.0
# Growth from the first quarter to the last that is not a leak: connections of clients come and go, and the
# service opens further ones to the file, with three descriptors each, when it needs them first.
MEMORY_GROWTH, DESCRIPTOR_GROWTH, IDLE_GROWTH = 8.0, 16, 6


class Resources:
    """RssAnon in MiB and the number of descriptors of an instance."""

    def __init__(self, instance: Instance, load: Load):
        self.instance, self.load = instance, load
        self.samples: list[tuple[float, int]] = []  # while no fault affects the instance
        self.processes: set[int] = set()
        self.idle = 0  # descriptors before the first client

    def sample(self) -> tuple[float, int]:
        process = Path(f"/proc/{self.instance.pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return int(status["RssAnon"].split()[0]) / 1024, len(list((process / "fd").iterdir()))

    async def warm_up(self) -> None:
        """Lets each worker open its connections to the storage, and counts the descriptors without clients."""
        for number in range(20):
            client = Client(self.load, f"warm-up {number}")
            await readers.list_once(client, self.instance.name)
            client.close()
        await asyncio.sleep(1)
        self.idle = self.sample()[1]
        self.processes.add(self.instance.pid)

    async def watch(self, _: Client) -> None:
        await asyncio.sleep(WARM_UP)
        while self.load.running:
            if self.load.journal.healthy(self.instance.name):
                self.samples.append(self.sample())
                self.processes.add(self.instance.pid)
            await asyncio.sleep(1)

    async def growth(self) -> tuple[dict[str, str], list[str]]:
        """Returns the medians of the first and the last quarter, and what grew too much. The clients have gone."""
        for _ in range(50):
            if (left := self.sample()[1]) <= self.idle:
                break
            await asyncio.sleep(0.2)
        memory, descriptors = zip(*self.samples or [self.sample()])
        quarter = max(1, len(memory) // 4)
        figures, grown = {}, []
        for name, first, last, limit in (
            ("RssAnon of A, MiB", memory[:quarter], memory[-quarter:], MEMORY_GROWTH + memory[0] / 10),
            ("descriptors of A", descriptors[:quarter], descriptors[-quarter:], DESCRIPTOR_GROWTH),
            ("descriptors of A without clients", [self.idle], [left], IDLE_GROWTH),
        ):
            figures[name] = f"{median(first):.1f} to {median(last):.1f}"
            # Figures of two processes cannot be compared.
            if median(last) - median(first) > limit and len(self.processes) == 1:
                grown.append(f"{name} grew: {figures[name]}")
        return figures, grown


async def watch_readiness(client: Client) -> None:
    await asyncio.gather(*(follow(instance, client.load) for instance in client.load.instances.values()))


async def follow(instance: Instance, load: Load) -> None:
    """Follows `/ready`, which must be 200 unless a fault explains another result."""
    while load.running:
        exchange = Exchange(READY, instance.name)
        try:
            async with asyncio.timeout(READY_TIMEOUT):
                connection = await Connection.open(instance.management_port, instance.machine.host)
                with contextlib.closing(connection):
                    exchange.response = await connection.exchange(READY)
        except (OSError, Lost, TimeoutError):
            exchange.failure = "lost"
        exchange.received = time.monotonic()
        instance.ready = exchange.status == 200
        if not instance.ready and not load.journal.concerning(exchange):
            load.journal.suspects.append(exchange)
        await asyncio.sleep(0.2)
