"""The dashboard: its panels, with variables replaced as Grafana does it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from observe.prometheus import Prometheus

RATE_INTERVAL = "5s"  # Grafana: at least four scrape intervals


@dataclass
class Target:
    expression: str
    legend: str

    def label(self, labels: dict[str, str]) -> str:
        """The text of a series in the legend."""
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda name: labels.get(name[1], "?"), self.legend)


@dataclass
class Panel:
    row: str
    title: str
    description: str
    unit: str
    targets: list[Target]


def read_dashboard(path: Path, prometheus: Prometheus) -> list[Panel]:
    document = json.loads(path.read_text())
    values = {"__rate_interval": RATE_INTERVAL}
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
            values[variable["name"]] = "|".join(map(re.escape, prometheus.label_values(metric, label)))
    values = {name: value.replace("\\", "\\\\") for name, value in values.items()}
    panels, row = [], ""
    for panel in document["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
            continue
        targets = [Target(substitute(each["expr"], values), each["legendFormat"]) for each in panel["targets"]]
        unit = panel["fieldConfig"]["defaults"]["unit"]
        panels.append(Panel(row, panel["title"], panel["description"], unit, targets))
    return panels


def substitute(expression: str, values: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], expression)
