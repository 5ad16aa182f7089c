"""Prometheus as a throw-away server, and its HTTP API."""

import json
import math
import urllib.parse
import urllib.request
from pathlib import Path

from harness.servers import Server, accepts, free_port

SCRAPE_INTERVAL = "1s"
Labels = dict[str, str]


class Prometheus(Server):
    def __init__(self, folder: Path, rules: Path, targets: dict[str, int], textfile: int):
        """`targets` has the management port of each instance by its name."""
        port, config = free_port(), folder / "prometheus.yml"
        jobs = [{"targets": [f"127.0.0.1:{each}"], "labels": {"instance": name}} for name, each in targets.items()]
        config.write_text(json.dumps({
            "global": {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {"job_name": "animal-store", "static_configs": jobs},
                {"job_name": "node", "metrics_path": "/animal-store-backup.prom",
                 "static_configs": [{"targets": [f"127.0.0.1:{textfile}"]}]},
            ],
        }))
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
        super().__init__(folder, "prometheus", port, [*command, f"--web.listen-address=127.0.0.1:{port}"])

    async def is_ready(self) -> bool:
        """While Prometheus loads its configuration, the port is open and its API answers 503."""
        try:
            return await accepts(self.port) and bool(self.get("status/buildinfo"))
        except (OSError, ValueError):
            return False

    def get(self, path: str, **parameters: object):
        """Returns the data of a response. Raises HTTPError if Prometheus rejects the request."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url) as response:
            return json.load(response)["data"]

    def values(self, expression: str, at: float) -> list[tuple[Labels, float]]:
        """The series of an expression that have a number at a time."""
        data = self.get("query", query=expression, time=at)["result"]
        found = [(series["metric"], float(series["value"][1])) for series in data]
        return [(labels, value) for labels, value in found if math.isfinite(value)]

    def range(self, expression: str, start: float, end: float) -> list[Labels]:
        """The series of an expression that have a number between two times."""
        data = self.get("query_range", query=expression, start=start, end=end, step=1)["result"]
        return [series["metric"] for series in data if any(math.isfinite(float(each)) for _, each in series["values"])]

    def rules(self) -> list[dict]:
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]
