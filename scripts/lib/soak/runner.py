"""One run: starts the servers and the clients, runs the faults, stops everything and collects the results."""

import asyncio
import contextlib
import json
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness import creators, readers
from harness.client import Client, Load, clients
from harness.errors import be_refused
from harness.ledger import Comparison, compare
from harness.servers import Instance
from soak import revocations, strangers
from soak.samples import Sample, Trend, sample, sample_instance, trend, watch_readiness
from soak.schedule import run_faults
from soak.stages import FileStage, SharedStage

PROGRESS = 10.0
BEHAVIOURS = {
    creators.create_without_key: 4, creators.create_with_key: 4, be_refused: 2, readers.read_acknowledged: 5,
    readers.get_newest: 2, readers.follow: 2, readers.list_pets: 3, readers.walk: 1, strangers.read_slowly: 2,
    strangers.vanish: 2, strangers.send_nothing: 2, revocations.revoke_keys: 1,
}


@dataclass
class Logs:
    panics: list[str] = field(default_factory=list)
    dropped: int = 0  # lines
    lines: list[str] = field(default_factory=list)  # of the examples of violations


@dataclass
class Results:
    load: Load
    seconds: float
    trend: Trend
    comparison: Comparison
    rows: int
    logs: Logs
    failures: list[str]

    def problems(self) -> list[str]:
        """Every check that did not hold."""
        found = self.load.journal.problems() + self.comparison.problems() + self.trend.problems() + self.failures
        if self.logs.panics:
            found.append(f"{len(self.logs.panics):,} panics in the logs, for example {self.logs.panics[0]}")
        return found


async def soak(folder: Path, program: Path, seconds: float, seed: int, sqlite: bool) -> Results:
    stage = (FileStage if sqlite else SharedStage)(folder, program)
    try:
        await stage.start()
        tokens = [await stage.commands.create(f"soak-{number}") for number in range(4)]
        load = Load(stage.instances, stage.commands, tokens, seed)
        load.reader_token = await stage.commands.create("reader", "--scopes", "read")
        for instance in stage.instances.values():
            await instance.start()
        first = stage.instances["A"]
        idle = await open_connections(load, first)
        load.end = time.monotonic() + seconds
        samples: list[Sample] = []
        async with background(load, samples), clients(load, BEHAVIOURS):
            failures = await run_faults(load, stage, seconds)
        if load.ledger.unread:
            load.journal.violate("acknowledged pets were not read on each instance", None, str(len(load.ledger.unread)))
        load.timeline.add_stalls(stage.stalls, frozenset(stage.instances))
        load.journal.settle()
        still_open = await idle_descriptors(first, idle)
        for instance in stage.instances.values():
            if code := await instance.stop(signal.SIGTERM):
                failures.append(f"the last stop of {instance.name}: exit code {code}")
        rows = await stage.rows()
        return Results(load, seconds, trend(samples, (idle, still_open)), compare(load.ledger, rows), len(rows),
                       read_logs(load), failures)
    finally:
        await stage.discard()


@contextlib.asynccontextmanager
async def background(load: Load, samples: list[Sample]):
    """Runs what watches the load."""
    async with asyncio.TaskGroup() as tasks:
        watchers = [print_progress(load), sample_instance(load.instances["A"], load.timeline, samples)]
        watchers += [watch_readiness(each, load.timeline, load.journal) for each in load.instances.values()]
        running = [tasks.create_task(watcher) for watcher in watchers]
        yield
        for task in running:
            task.cancel()


async def print_progress(load: Load) -> None:
    start = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS)
        faults = load.timeline.faults
        print(
            f"{time.monotonic() - start:6.0f} s  {load.journal.requests:,} requests  "
            f"{len(load.ledger.acknowledged):,} pets  {len(faults)} faults, "
            f"latest: {faults[-1].kind if faults else 'none'}  {load.journal.violation_count} violations",
            flush=True,
        )


async def open_connections(load: Load, instance: Instance) -> int:
    """Lets each worker open its connections to the storage. Returns the descriptors without clients."""
    for number in range(20):
        client = Client(load, f"warm-up {number}")
        await readers.list_once(client, instance.name)
        client.close()
    await asyncio.sleep(1)
    return sample(instance.pid).descriptors


async def idle_descriptors(instance: Instance, expected: int) -> int:
    """The descriptors of an instance whose clients have gone, once they are closed."""
    for _ in range(50):
        if (count := sample(instance.pid).descriptors) <= expected:
            break
        await asyncio.sleep(0.2)
    return count


def read_logs(load: Load) -> Logs:
    logs = Logs()
    for instance in load.instances.values():
        with instance.log.open() as lines:
            for line in lines:
                if line.partition('"request_id":"')[2].partition('"')[0] in load.journal.examples:
                    logs.lines.append(line.rstrip("\n"))
                if "panic" in line:
                    logs.panics.append(line.rstrip("\n"))
                elif '"dropped":' in line:
                    logs.dropped += json.loads(line)["dropped"]
    return logs
