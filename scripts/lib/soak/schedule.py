"""The order, length and scope of the faults, drawn from a seed: one at a time, with health between them."""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from soak.client import Load
from soak.faults import FAULTS, Fault, Target
from soak.instances import Instance
from soak.rush import start_rush
from soak.servers import Postgres, Redis
from soak.timeline import RECOVERY, FaultRecord

WARM_UP = 4.0
# Seconds of health after the recovery from a fault.
HEALTH = (1.0, 4.0)
# Delays of slow connections in seconds: below and above the lease, and above the timeout of PostgreSQL.
DELAYS = (0.02, 0.1, 0.4, 1.2)


@dataclass
class Draw:
    fault: Fault
    instances: list[str]
    seconds: float
    delay: float
    pause: float  # after it


def draws(seed: int, longest: float) -> Iterator[Draw]:
    """Every kind of fault once in each round, in a random order."""
    rng = random.Random(seed)
    while True:
        for fault in rng.sample(FAULTS, len(FAULTS)):
            some = rng.choice((["A"], ["B"], ["A", "B"]))
            one = [rng.choice("AB")]
            instances = {"B": ["B"], "one": one, "some": some, "all": ["A", "B"]}[fault.scope]
            yield Draw(fault, instances, rng.uniform(1, longest), rng.choice(DELAYS), RECOVERY + rng.uniform(*HEALTH))


async def run_faults(load: Load, seed: int, longest: float, postgres: Postgres, redis: Redis) -> list[str]:
    """Runs faults until shortly before the end of the load. Returns the failures of instances at their stops."""
    failures: list[str] = []
    await asyncio.sleep(WARM_UP)
    for draw in draws(seed, longest):
        if time.monotonic() + draw.seconds + RECOVERY > load.end:
            return failures
        instances: list[Instance] = [load.instances[name] for name in draw.instances]
        target = Target(postgres, redis, instances, draw.seconds, draw.delay, failures)
        fault = draw.fault
        record = FaultRecord(fault.kind, frozenset(draw.instances), fault.impairs, fault.stop, time.monotonic())
        load.timeline.begin(record)
        rush = await start_rush(load, draw.instances[0]) if fault.stop in ("term", "int") else None
        await fault.run(target)
        if rush:
            await rush
        record.end = time.monotonic()
        await asyncio.sleep(draw.pause)
    raise AssertionError("unreachable")
