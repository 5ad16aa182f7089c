"""The order, length and scope of the faults, drawn from a seed: one at a time, with health between them."""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

from harness.client import Client, Load
from harness.creators import attempt, create_request
from harness.journal import RECOVERY, Fault
from harness.readers import list_once
from harness.soak.faults import Kind, Target
from harness.soak.restores import NOTICED
from harness.stages import Stage

WARM_UP = 4.0
# Seconds for the preparation of a fault that has one.
PREPARATION = 15.0
# Delays of slow connections in seconds: below and above half a lease, and near the timeout of PostgreSQL.
DELAYS = (0.02, 0.1, 0.4, 1.2)
# Ranges in seconds, of a fault and of the health that follows the recovery from it, in a run of at most SHORT_RUN
# seconds, so that it has more faults, and in longer runs.
SHORT_RUN = 180.0
SHORT, LONG = ((1.5, 3.0), (0.5, 1.5)), ((1.0, 8.0), (1.0, 4.0))
# Busy clients, the seconds before the fault in which they begin, and the seconds of it in which they end.
RUSH, LEAD, OVERLAP = 16, 1.0, 1.0


def draws(kinds: tuple[Kind, ...], stage: Stage, load: Load, short: bool) -> Iterator[tuple[Kind, Target, float]]:
    """Every kind of fault once in each round, in a random order, each with its target and the pause after it. The first
    round begins with the early ones."""
    rng, (fault, health), names = random.Random(load.seed), SHORT if short else LONG, list(stage.instances)
    subsets = [[name] for name in names] + ([names] if len(names) > 1 else [])
    order = sorted(rng.sample(kinds, len(kinds)), key=lambda kind: not kind.early)
    while True:
        for kind in order:
            scopes = {"last": names[-1:], "one": [rng.choice(names)], "some": rng.choice(subsets), "all": names}
            pause = RECOVERY + rng.uniform(*health)
            instances = [stage.instances[name] for name in scopes[kind.scope]]
            yield kind, Target(load, stage, instances, rng.uniform(*fault), rng.choice(DELAYS)), pause
        order = rng.sample(kinds, len(kinds))


async def run_faults(load: Load, stage: Stage, kinds: tuple[Kind, ...], seconds: float) -> list[str]:
    """Runs faults, and waits for the end of the load. Returns the failures of instances at their stops."""
    failures: list[str] = []
    await asyncio.sleep(WARM_UP)
    for kind, target, pause in draws(kinds, stage, load, seconds <= SHORT_RUN):
        preparation = PREPARATION if kind.prepare else 0
        if time.monotonic() + preparation + target.seconds + RECOVERY > load.end:
            break
        names = [instance.name for instance in target.instances]
        print(f"{time.monotonic() - load.journal.started:6.0f} s  {kind.name}", flush=True)
        if kind.prepare:
            await kind.prepare(target)
        logged = {instance.log: instance.log.stat().st_size for instance in target.instances}
        async with rush(load, names[-1]):
            fault = load.journal.begin(Fault(kind.name, frozenset(names), kind.impairs, kind.stop, kind.replaces))
            failures += await kind.run(target) or []
        fault.end = time.monotonic()
        await asyncio.sleep(pause)
        for log, size in logged.items():
            failures += [f"{kind.name}: {log.stem} does not log {text!r}" for text in await missing(log, size, kind.logs)]
    await asyncio.sleep(load.end - time.monotonic())
    return failures


async def missing(log: Path, size: int, texts: tuple[str, ...]) -> list[str]:
    """Waits for texts in a log after this number of bytes. Returns those that do not come in time."""
    end = time.monotonic() + NOTICED
    while left := [text for text in texts if text.encode() not in log.read_bytes()[size:]]:
        if time.monotonic() > end:
            break
        await asyncio.sleep(0.2)
    return left


@contextlib.asynccontextmanager
async def rush(load: Load, instance: str):
    """Runs busy clients of an instance from before the block, so that a fault meets requests in flight."""
    latest_end = time.monotonic() + LEAD + OVERLAP
    busy = asyncio.gather(*(keep_busy(Client(load, f"rush {number}"), instance, latest_end) for number in range(RUSH)))
    await asyncio.sleep(LEAD)
    yield
    await busy


async def keep_busy(client: Client, instance: str, latest_end: float) -> None:
    """Creates and lists in turn until a create fails, or a response says `Connection: close`."""
    while time.monotonic() < latest_end:
        create = client.load.ledger.new()
        if not await attempt(client, create, create_request(create, client.token), instance) or not client.connections:
            break
        await list_once(client, instance)
    client.close()
