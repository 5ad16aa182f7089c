"""The checks of the dashboard, the alerts, the scrapes and the counts. Each yields its problems as sentences."""

import json
import re
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.observe.prometheus import Prometheus

RATE_INTERVAL = "5s"  # Grafana: at least four scrape intervals
RUNBOOK = "{{ $externalLabels.animal_store_runbook }}"
METRIC = re.compile(r"\b(up|process_\w+|animal_store_\w+)(\{[^}]*\})?")
ALTERNATIVES = re.compile(r'=~"([^"]*\|[^"]*)"')
# Metrics that instances do not have without TLS, with PostgreSQL and Redis, and with a file.
ABSENT_WITH_SERVERS = re.compile(r"animal_store_(http_tls_\w+|sqlite_\w+)")
ABSENT_WITH_FILE = re.compile(r"animal_store_(http_tls|postgres|keys_cache|keys_lease|keys_redis)\w*")
# A comparison, or a part of an expression in which no comparison can be.
COMPARISON = re.compile(r'"(?:\\.|[^"\\])*"|\{[^}]*\}|(?P<operator>[=!]=|[<>]=?)(?!\s*bool)')


def scrapes(prometheus: Prometheus, at: float) -> Iterator[str]:
    """Scrapes fail, or their format is invalid. A scrape has a second, which a busy machine can exceed at times."""
    for target in prometheus.get("targets")["activeTargets"]:
        if target["health"] != "up":
            yield f"Prometheus cannot scrape {target['scrapeUrl']}: {target['lastError']}"
    for labels, _ in prometheus.values("avg_over_time(up[10m]) < 0.8", at):
        yield f"scrapes of {labels['instance']} failed"


def is_present(expression: str, absent: re.Pattern) -> bool:
    return any(not absent.fullmatch(metric) for metric, _ in METRIC.findall(expression))


def panels(prometheus: Prometheus, dashboard: Path, start: float, end: float, absent: re.Pattern) -> Iterator[str]:
    """A query of a panel is wrong, has no data, or names something that does not exist."""
    document = json.loads(dashboard.read_text())
    # Variables are replaced as Grafana does it.
    values = {"__rate_interval": RATE_INTERVAL}
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
            value = "|".join(map(re.escape, prometheus.get(f"label/{label}/values", **{"match[]": metric})))
            values[variable["name"]] = value.replace("\\", "\\\\")
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            subject = f"panel {panel['title']}"
            expression = re.sub(r"\$(\w+)", lambda name: values[name[1]], target["expr"])
            try:
                series = prometheus.range(expression, start, end)
            except urllib.error.HTTPError as error:
                yield f"{subject}: {error.read().decode()}"
                continue
            if is_present(expression, absent) and not series:
                yield f"{subject}: no data for {expression}"
            for label in re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"]):
                if any(label not in labels for labels in series):
                    yield f"{subject}: a series has no label {label}: {expression}"
            yield from selectors(prometheus, subject, expression, absent)


def selectors(prometheus: Prometheus, subject: str, expression: str, absent: re.Pattern) -> Iterator[str]:
    """A metric, a label or a value of a label does not exist."""
    for name, matchers in METRIC.findall(expression):
        if absent.fullmatch(name):
            continue
        for selector in alternatives(name + matchers):
            if not prometheus.get("series", **{"match[]": selector}):
                yield f"{subject}: no series for {selector}"


def alternatives(selector: str) -> list[str]:
    """The selector, once for each alternative of its regular expressions."""
    if not (found := ALTERNATIVES.search(selector)):
        return [selector]
    before, after = selector[: found.start(1)], selector[found.end(1) :]
    return [each for value in found[1].split("|") for each in alternatives(before + value + after)]


def alert(prometheus: Prometheus, rule: dict, at: float, anchors: set[str], absent: re.Pattern) -> Iterator[str]:
    """The alert lacks a part, its runbook does not exist, or its expression has no data."""
    name, annotations = rule["name"], rule["annotations"]
    if rule["labels"].get("severity") not in ("critical", "warning", "info"):
        yield f"alert {name}: no severity"
    for part in ("summary", "description"):
        if not annotations.get(part):
            yield f"alert {name}: no {part}"
    document, _, anchor = annotations.get("runbook_url", "").partition("#")
    if document != RUNBOOK or anchor not in anchors:
        yield f"alert {name}: docs/operations/alerts.md has no heading for its runbook_url"
    values = prometheus.values(as_value(rule["query"]), at)
    if is_present(rule["query"], absent) and not values:
        yield f"alert {name}: no data for {rule['query']}"
    yield from selectors(prometheus, f"alert {name}", rule["query"], absent)


def as_value(expression: str) -> str:
    """The expression with `bool` after each comparison, without `absent` and what `unless` excludes: it has data
    whether the condition holds or not."""
    expression = re.sub(r"\babsent\(([^()]*)\)", r"(\1)", expression.partition(" unless ")[0])
    return COMPARISON.sub(lambda part: f"{part[0]} bool" if part["operator"] else part[0], expression)


def anchors(document: Path) -> set[str]:
    """The anchors of the headings of a Markdown document."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def undisplayed_metrics(metrics: Path, dashboard: Path, absent: re.Pattern) -> Iterator[str]:
    """A metric of docs/metrics.md is not on the dashboard, although an instance of the run has it."""
    shown = dashboard.read_text()
    for name in re.findall(r"^\| `(\w+)`", metrics.read_text(), re.MULTILINE):
        if not absent.fullmatch(name) and not re.search(rf"\b{name}(_bucket|_sum|_count)?\b", shown):
            yield f"the dashboard does not show {name}"


def counts(prometheus: Prometheus, at: float, client: Counter) -> Iterator[str]:
    """The instances counted other responses than the clients."""
    query = "sum by (operation, method, status) (animal_store_http_requests_total)"
    names = ("operation", "method", "status")
    served = Counter({tuple(map(labels.get, names)): int(value) for labels, value in prometheus.values(query, at)})
    for key in sorted(served.keys() | client.keys()):
        if served[key] != client[key]:
            yield f"requests_total of {' '.join(key)}: {served[key]} instead of {client[key]}"
