"""The order, length and scope of the faults, drawn from a seed: one at a time, with health between them."""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from soak.client import Load
from soak.faults import FAULTS, NOTHING, Fault, Target
from soak.instances import Instance
from soak.rush import Rush
from soak.servers import Postgres, Redis
from soak.timeline import LEAD_IN, RECOVERY, FaultRecord

WARM_UP = 4.0
# Delays of slow connections in seconds: below and above half a lease, and near the timeout of PostgreSQL.
DELAYS = (0.02, 0.1, 0.4, 1.2)


@dataclass(frozen=True)
class Pace:
    """Ranges in seconds: of a fault, and of the health that follows the recovery from it."""

    fault: tuple[float, float]
    health: tuple[float, float]


SHORT, LONG = Pace((1.5, 3.0), (0.5, 1.5)), Pace((1.0, 8.0), (1.0, 4.0))


@dataclass
class Draw:
    fault: Fault
    instances: list[str]
    seconds: float
    delay: float
    pause: float  # after it


def draws(seed: int, pace: Pace) -> Iterator[Draw]:
    """Every kind of fault once in each round, in a random order. The first round begins with the early ones."""
    rng = random.Random(seed)
    round_of_faults = sorted(rng.sample(FAULTS, len(FAULTS)), key=lambda fault: not fault.early)
    while True:
        for fault in round_of_faults:
            some, one = rng.choice((["A"], ["B"], ["A", "B"])), [rng.choice("AB")]
            instances = {"B": ["B"], "one": one, "some": some, "all": ["A", "B"]}[fault.scope]
            pause = RECOVERY + rng.uniform(*pace.health)
            yield Draw(fault, instances, rng.uniform(*pace.fault), rng.choice(DELAYS), pause)
        round_of_faults = rng.sample(FAULTS, len(FAULTS))


async def run_faults(load: Load, seed: int, pace: Pace, postgres: Postgres, redis: Redis) -> list[str]:
    """Runs faults until shortly before the end of the load. Returns the failures of instances at their stops."""
    failures: list[str] = []
    await asyncio.sleep(WARM_UP)
    for draw in draws(seed, pace):
        if time.monotonic() + draw.seconds + RECOVERY > load.end:
            return failures
        instances: list[Instance] = [load.instances[name] for name in draw.instances]
        target = Target(postgres, redis, instances, draw.seconds, draw.delay, failures)
        fault, affected = draw.fault, frozenset(draw.instances)
        rush = Rush(load, draw.instances[-1])
        lead = load.timeline.begin(FaultRecord(LEAD_IN, frozenset("AB"), NOTHING, None, time.monotonic()))
        await rush.start()
        lead.end = time.monotonic()
        record = load.timeline.begin(FaultRecord(fault.kind, affected, fault.impairs, fault.stop, lead.end))
        await fault.run(target)
        await rush.end()
        record.end = time.monotonic()
        await asyncio.sleep(draw.pause)
    raise AssertionError("unreachable")
