"""Prometheus as a throw-away server, and its HTTP API."""

import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from harness.servers import Server, free_port

SCRAPE_INTERVAL = "1s"


class QueryError(Exception):
    """Prometheus rejected a query."""


@dataclass
class Series:
    """One line of a graph: its labels and its values, by time. Values that are not numbers are omitted."""

    labels: dict[str, str]
    points: list[tuple[float, float]]


@dataclass
class Panel:
    title: str
    unit: str
    targets: dict[str, str]  # queries, with the texts of their legends

    def legend(self, query: str, series: Series) -> str:
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda name: series.labels.get(name[1], "?"), self.targets[query])


class Prometheus(Server):
    def __init__(self, folder: Path, rules: Path, targets: dict[str, int]):
        """`targets` has the management port of each instance by its name."""
        self.port = free_port()
        self.config = folder / "prometheus.yml"
        self.config.write_text(json.dumps({
            "global": {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {"job_name": "animal-store", "static_configs": [
                    {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": name}} for name, port in targets.items()
                ]},
            ],
        }))
        command = ["prometheus", f"--config.file={self.config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
        super().__init__(folder, "prometheus", [*command, f"--web.listen-address=127.0.0.1:{self.port}"])

    async def is_ready(self) -> bool:
        """While Prometheus loads its configuration, the port is open and its API answers 503."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=1):
                return True
        except OSError:
            return False

    def get(self, path: str, **parameters: object):
        """Returns the data of a response. Raises QueryError if Prometheus rejects the request."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(json.load(error)["error"]) from error

    def value(self, expression: str, at: float) -> list[Series]:
        data = self.get("query", query=expression, time=at)["result"]
        return [Series(one["metric"], numbers([one["value"]])) for one in data]

    def range(self, expression: str, start: float, end: float) -> list[Series]:
        data = self.get("query_range", query=expression, start=start, end=end, step=1)["result"]
        return [Series(one["metric"], numbers(one["values"])) for one in data]

    def has_series(self, selector: str) -> bool:
        return bool(self.get("series", **{"match[]": selector}))

    def label_values(self, metric: str, label: str) -> list[str]:
        return self.get(f"label/{label}/values", **{"match[]": metric})

    def rules(self) -> list[dict]:
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]


def numbers(values: list) -> list[tuple[float, float]]:
    return [(time, float(value)) for time, value in values if math.isfinite(float(value))]
