"""One run: starts the servers, sends the load with its faults, and evaluates everything that Prometheus has."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.client import Load, clients
from harness.servers import START_TIMEOUT
from harness.tool import REPOSITORY
from observe import checks
from observe.load import BEHAVIOURS, SETTINGS, run_faults
from observe.prometheus import Panel, Prometheus, QueryError, Series
from soak.stages import FileStage, SharedStage

RULES = REPOSITORY / "deploy/prometheus/alerts.yaml"
RULE_TESTS = REPOSITORY / "deploy/prometheus/alerts_test.yaml"
DASHBOARD = REPOSITORY / "deploy/grafana/animal-store.json"
RATE_INTERVAL = "5s"  # Grafana: at least four scrape intervals


@dataclass
class Results:
    responses: Counter  # by operation, method and status
    seconds: float
    panels: list[tuple[Panel, list[list[Series]]]]  # the series of each query
    alerts: list[dict]  # the rules with their states
    problems: list[str]


async def observe(folder: Path, program: Path, seconds: float, sqlite: bool) -> Results:
    kind, absent = (FileStage, checks.ABSENT_WITH_FILE) if sqlite else (SharedStage, checks.ABSENT_WITH_SERVERS)
    stage = kind(folder, program, SETTINGS)
    targets = {name: instance.management_port for name, instance in stage.instances.items()}
    prometheus = Prometheus(folder, RULES, targets)
    try:
        await stage.start()
        load = Load(stage.instances, stage.commands, [await stage.commands.create(f"writer-{n}") for n in range(4)])
        load.reader_token = await stage.commands.create("reader", "--scopes", "read")
        for instance in stage.instances.values():
            await instance.start()
        await prometheus.start()
        await until_scraped(prometheus, len(targets), since=0)
        start, before = time.time(), time.monotonic()
        async with clients(load, BEHAVIOURS):
            await run_faults(load, stage, seconds)
        load.timeline.add_stalls(stage.stalls, frozenset(stage.instances))
        load.journal.settle()
        duration = time.monotonic() - before
        await until_scraped(prometheus, len(targets), since=time.time())
        return evaluate(prometheus, load, start, duration, absent)
    finally:
        await prometheus.discard()
        await stage.discard()


async def until_scraped(prometheus: Prometheus, instances: int, since: float) -> None:
    """Waits until Prometheus has scraped each instance. It finds its targets some seconds after its start."""
    scraped = f"count(up == 1 and timestamp(up) > {since:.3f}) == {instances}"
    async with asyncio.timeout(START_TIMEOUT):
        while not prometheus.value(scraped, time.time()):
            await asyncio.sleep(0.2)


def evaluate(prometheus: Prometheus, load: Load, start: float, seconds: float, absent: re.Pattern) -> Results:
    panels, now, alerts = [], time.time(), prometheus.rules()
    problems = load.journal.problems() + list(load.journal.examples.values())
    for panel in read_dashboard(prometheus):
        try:
            series = [prometheus.range(expression, start, start + seconds) for expression in panel.targets]
            problems += checks.panel(prometheus, panel, series, absent)
            panels.append((panel, series))
        except QueryError as error:
            problems.append(f"panel {panel.title}: {error}")
    anchors = checks.anchors(REPOSITORY / "docs/operations/alerts.md")
    for rule in alerts:
        problems += checks.alert(prometheus, rule, now, anchors, absent)
    problems += files(prometheus, absent)
    for instance in load.instances.values():
        problems += checks.exposition(instance.management_port)
    problems += checks.scrapes(prometheus, now)
    problems += checks.counts(prometheus, now, load.journal.statuses)
    return Results(load.journal.statuses, seconds, panels, alerts, problems)


def read_dashboard(prometheus: Prometheus) -> list[Panel]:
    """The panels of the dashboard, with variables replaced as Grafana does it."""
    document = json.loads(DASHBOARD.read_text())
    values = {"__rate_interval": RATE_INTERVAL}
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
            value = "|".join(map(re.escape, prometheus.label_values(metric, label)))
            values[variable["name"]] = value.replace("\\", "\\\\")
    panels = []
    for panel in document["panels"]:
        if panel["type"] != "row":
            targets = {re.sub(r"\$(\w+)", lambda name: values[name[1]], each["expr"]): each["legendFormat"]
                       for each in panel["targets"]}
            panels.append(Panel(panel["title"], panel["fieldConfig"]["defaults"]["unit"], targets))
    return panels


def files(prometheus: Prometheus, absent: re.Pattern) -> Iterator[str]:
    """The files of the repository have a problem."""
    yield from checks.promtool("check", "rules", RULES)
    yield from checks.promtool("test", "rules", RULE_TESTS)
    yield from checks.promtool("check", "config", prometheus.config)
    yield from checks.undisplayed_metrics(REPOSITORY / "docs/metrics.md", DASHBOARD, absent)
