"""One run: starts the servers, sends the load with its faults, and evaluates everything that Prometheus has."""

import asyncio
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from observe import checks, figure
from observe.dashboard import Panel, read_dashboard
from observe.faults import SETTINGS, Faults
from observe.load import PROCESSES, Counts, send_load
from observe.prometheus import Prometheus, QueryError, Series
from observe.requests import PETS, Tokens
from servers import PETS as PETS_SQL  # of scripts/bench
from soak.instances import Instance, KeyCommands
from soak.servers import START_TIMEOUT, Postgres, Redis

REPOSITORY = Path(__file__).resolve().parent.parent.parent.parent
RULES = REPOSITORY / "deploy/prometheus/alerts.yaml"
RULE_TESTS = REPOSITORY / "deploy/prometheus/alerts_test.yaml"
DASHBOARD = REPOSITORY / "deploy/grafana/animal-store.json"


@dataclass
class Results:
    counts: Counts
    seconds: float
    panels: list[tuple[Panel, list[list[Series]]]]  # the series of each target
    alerts: list[dict]  # the rules with their states
    problems: list[str]
    figure: str


async def observe(folder: Path, program: Path, seconds: float) -> Results:
    postgres, redis, started = Postgres(folder), Redis(folder), []
    try:
        await postgres.create()
        started.append(redis)
        await redis.start()
        keys = KeyCommands(program, folder, redis)
        instances = [Instance(folder, name, program, storage=postgres, keys=redis) for name in "AB"]
        for instance in instances:
            instance.options["env"] |= SETTINGS
            started.insert(0, instance)
            await instance.start()
        for instance in instances:
            await until_ready(instance)
        await postgres.sql(PETS_SQL.format(PETS), "ANALYZE pets")
        prometheus = Prometheus(folder, RULES, {instance.name: instance.management_port for instance in instances})
        started.insert(0, prometheus)
        await prometheus.start()
        await until_scraped(prometheus, len(instances), since=0)

        start, before = time.time(), time.monotonic()
        tokens = await create_tokens(keys)
        faults = Faults(postgres, redis, keys, instances[0], tokens)
        _, counts = await asyncio.gather(faults.run(seconds), run_load(instances, tokens, seconds))
        counts += faults.counts
        duration = time.monotonic() - before
        await until_scraped(prometheus, len(instances), since=time.time())
        return evaluate(prometheus, instances, faults, counts, start, duration)
    finally:
        for each in (*started, postgres):
            await each.discard()


async def until_ready(instance: Instance) -> None:
    """Waits until /ready is 200."""
    async with asyncio.timeout(START_TIMEOUT):
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{instance.management_port}/ready").close()
                return
            except OSError:
                await asyncio.sleep(0.05)


async def until_scraped(prometheus: Prometheus, instances: int, since: float) -> None:
    """Waits until Prometheus has scraped each instance. It finds its targets some seconds after its start."""
    scraped = f"count(up == 1 and timestamp(up) > {since:.3f}) == {instances}"
    async with asyncio.timeout(START_TIMEOUT):
        while not prometheus.value(scraped, time.time()):
            await asyncio.sleep(0.2)


async def create_tokens(keys: KeyCommands) -> Tokens:
    writers = [await keys.create(f"writer-{number}") for number in range(4)]
    return Tokens(writers, await keys.create("reader", "--scopes", "read"), await keys.create("revoked"))


async def run_load(instances: list[Instance], tokens: Tokens, seconds: float) -> Counts:
    """Returns the counts of all processes of the load."""
    ports = [instance.port for instance in instances]
    total, pool = Counts(), ProcessPoolExecutor(PROCESSES)
    try:
        loop = asyncio.get_running_loop()
        loads = (loop.run_in_executor(pool, send_load, each, ports, tokens, seconds) for each in range(PROCESSES))
        for counts in await asyncio.gather(*loads):
            total += counts
    finally:
        pool.shutdown(wait=False)  # after a signal, the load ends when the instances do
    return total


def evaluate(
    prometheus: Prometheus, instances: list[Instance], faults: Faults, counts: Counts, start: float, seconds: float
) -> Results:
    end = start + seconds
    panels = []
    problems = [f"unexpected response: {what} ({number} times)" for what, number in counts.unexpected.items()]
    for panel in read_dashboard(DASHBOARD, prometheus):
        try:
            series = [prometheus.range(each.expression, start, end, 1) for each in panel.targets]
            problems += checks.panel(panel, series)
            for target in panel.targets:
                problems += checks.selectors(prometheus, f"panel {panel.title}", target.expression)
        except QueryError as error:
            problems.append(f"panel {panel.title}: {error}")
        else:
            panels.append((panel, series))
    now = time.time()
    alerts = prometheus.rules()
    anchors = checks.anchors(REPOSITORY / "docs/operations/alerts.md")
    for rule in alerts:
        problems += checks.alert(prometheus, rule, now, anchors)
    problems += files(prometheus)
    for instance in instances:
        problems += checks.exposition(instance.management_port)
    problems += checks.scrapes(prometheus, now)
    problems += checks.counts(prometheus, now, counts.responses)
    return Results(counts, seconds, panels, alerts, problems, figure.draw(panels, faults.happened, start, seconds))


def files(prometheus: Prometheus) -> Iterator[str]:
    """The files of the repository have a problem."""
    yield from checks.promtool("check", "rules", RULES)
    yield from checks.promtool("test", "rules", RULE_TESTS)
    yield from checks.promtool("check", "config", prometheus.config)
    yield from checks.undisplayed_metrics(REPOSITORY / "docs/metrics.md", DASHBOARD)
