"""One run: starts the servers and the clients, runs the faults, stops everything and collects the results."""

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path

from servers import cpu_seconds  # of scripts/bench
from soak import creators, readers, revocations, strangers
from soak.client import Client, Load
from soak.history import History
from soak.instances import Instance, KeyCommands, create_instances
from soak.journal import Journal
from soak.ledger import Comparison, Ledger, compare
from soak.logs import LogFindings, read_logs
from soak.proxies import Proxies
from soak.samples import Sample, Trend, sample, sample_instance, trend, watch_readiness
from soak.schedule import LONG, SHORT, run_faults
from soak.servers import Postgres, Redis
from soak.timeline import Timeline

PROGRESS = 10.0
# A run of at most these seconds has short faults, so that there are more of them.
SHORT_RUN = 180.0
# Each kind of client and how many run.
CLIENTS = (
    (creators.create_without_key, 4), (creators.create_invalid, 1),
    (readers.read_acknowledged, 5), (readers.get_newest, 2), (readers.follow, 2), (readers.list_pets, 3),
    (readers.walk, 1), (readers.get_unknown, 1),
    (strangers.use_wrong_tokens, 1), (strangers.read_slowly, 2), (strangers.vanish, 2), (strangers.send_nothing, 2),
)
CREATORS_WITH_KEY = 4


@dataclass
class Results:
    load: Load
    seconds: float
    trend: Trend
    comparison: Comparison
    rows: int
    cpu_usage: tuple[float, float, float]  # shares of the CPUs: of the clients, with all servers, and of everything
    logs: LogFindings
    failures: list[str]


async def soak(folder: Path, program: Path, seconds: float, seed: int) -> Results:
    postgres, redis, proxies, instances = Postgres(folder), Redis(folder), Proxies(), []
    try:
        await postgres.create()
        await redis.start()
        instances += await create_instances(folder, program, proxies, postgres, redis)
        commands = KeyCommands(program, folder, redis)
        tokens = [await commands.create(f"soak-{number}") for number in range(4)]
        reader_token = await commands.create("reader", "--scopes", "read")
        for instance in instances:
            await instance.start()
        timeline, by_name = Timeline(), {instance.name: instance for instance in instances}
        ledger = Ledger(random.Random(seed))
        history = History(ledger.creates)
        load = Load(by_name, timeline, Journal(timeline), ledger, history, tokens, reader_token, 0)
        pace = SHORT if seconds <= SHORT_RUN else LONG
        idle = await open_connections(load, instances[0])
        load.end = time.monotonic() + seconds
        samples: list[Sample] = []
        before = cpu_ticks()
        async with background(load, samples):
            failures = await run_load(load, commands, seed, run_faults(load, seed, pace, postgres, redis))
        usage = cpu_usage(before)
        timeline.add_stalls(proxies.stalls)
        load.journal.settle()
        still_open = await idle_descriptors(instances[0], idle)
        failures += await stop_instances(instances)
        rows = await read_table(postgres)
        return Results(load, seconds, trend(samples, (idle, still_open)), compare(load.ledger, rows), len(rows), usage,
                       read_logs(instances, load.journal), failures)
    finally:
        for each in (*instances, redis, postgres, proxies):
            await each.discard()


@contextlib.asynccontextmanager
async def background(load: Load, samples: list[Sample]):
    """Runs what watches the load."""
    tasks = [asyncio.create_task(print_progress(load))]
    for instance in load.instances.values():
        tasks.append(asyncio.create_task(watch_readiness(instance, load.timeline, load.journal)))
    tasks.append(asyncio.create_task(sample_instance(load.instances["A"], load.timeline, samples)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


async def run_load(load: Load, commands: KeyCommands, seed: int, faults: Coroutine) -> list[str]:
    """Returns the result of the faults when the load has ended and each client has finished what it was doing."""
    clients: list[Client] = []

    def client(name: str) -> Client:
        clients.append(Client(load, f"{seed} {name}"))
        return clients[-1]

    async with asyncio.TaskGroup() as tasks:
        running_faults = tasks.create_task(faults)
        for kind, count in CLIENTS:
            for number in range(count):
                tasks.create_task(kind(client(f"{kind.__name__} {number}")))
        for number in range(CREATORS_WITH_KEY):
            pair = client(f"key {number}"), client(f"twin {number}")
            pair[1].token = pair[0].token
            tasks.create_task(creators.create_with_key(*pair))
        tasks.create_task(revocations.revoke_keys(client("revocations"), commands))
    if load.ledger.unread:
        load.journal.violate("acknowledged pets were not read on both instances", None, str(len(load.ledger.unread)))
    for each in clients:
        each.close()
    return running_faults.result()


async def print_progress(load: Load) -> None:
    start = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS)
        faults = load.timeline.real_faults
        print(
            f"{time.monotonic() - start:6.0f} s  {load.journal.requests:,} requests  "
            f"{len(load.ledger.acknowledged[None]):,} pets  {len(faults)} faults, "
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


def cpu_usage(before: tuple[float, ...]) -> tuple[float, float, float]:
    clients, own, busy, total = (after - start for after, start in zip(cpu_ticks(), before))
    return clients / total, own / total, busy / total


def cpu_ticks() -> tuple[float, float, int, int]:
    """CPU ticks of this process, with its descendants, of all processes, and of all processes and idle CPUs."""
    fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
    idle, total = fields[3] + fields[4], sum(fields)
    ticks = os.sysconf("SC_CLK_TCK")
    return time.process_time() * ticks, cpu_seconds(os.getpid()) * ticks, total - idle, total


async def stop_instances(instances: list[Instance]) -> list[str]:
    """Stops the instances and returns those that did not end with exit code 0."""
    codes = await asyncio.gather(*(instance.stop(signal.SIGTERM) for instance in instances))
    return [f"the last stop of {each.name}: exit code {code}" for each, code in zip(instances, codes) if code != 0]


async def read_table(postgres) -> list[list]:
    table = await postgres.sql("SELECT json_build_array(id, name, category_id, status) FROM pets ORDER BY id")
    return [json.loads(line) for line in table.splitlines()]
