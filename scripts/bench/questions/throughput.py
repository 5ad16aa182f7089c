"""How many requests per second does the service respond to, and at which CPU cost?

Pets are in PostgreSQL (durable: set TMPDIR to a folder on a disk), keys in Redis. In interleaved rounds, wrk drives the
service to its limit, and pgbench runs the same queries without the service, over 20 connections, with the plans of the
service. Prints medians: requests per second and latencies as wrk measures them, CPU seconds for 1000 requests, and the
figures of pgbench beside them. The service adds a batch of pets per statement, pgbench one.

The last line has the share of the CPUs that other processes used. Ends with exit code 1 if a response is missing or
has another status than expected.
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from load import create_request, request_head, wrk
from servers import CLOCK_TICKS, Postgres, Redis, Service, Workplace, cpu_seconds, run

PROGRAMS = ("wrk", "redis-server")
OPTIONS = {
    "rounds": (5, "rounds of all workloads"),
    "seconds": (5, "seconds per measurement"),
    "pets": (1_000_000, "pets in the table at the start"),
    "connections": (64, "connections of wrk"),
}
WARM_UP_SECONDS = 2
PGBENCH = ["-n", "-M", "prepared", "-c", "20", "-j", "2"]
# The settings of the service's connections.
PLANS = ["plan_cache_mode=force_generic_plan"]
PLANS += [f"{name}=off" for name in ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_nestloop", "jit")]
COLUMNS = "id, name, category_id, status"
# One per column of the table.
FORMATS = ["{:,.0f}", "{:.2f}", "{:.2f}", "{:.4f}", "{:.4f}", "{:.4f}", "{:,.0f}", "{:.4f}"]


@dataclass(frozen=True)
class Workload:
    name: str
    request: str  # a Lua expression
    status: int
    sql: str = ""  # for pgbench


def workloads(token: str, pets: int) -> list[Workload]:
    page = "?limit=20&status=available"
    before, after = request_head("GET", "/ID", token).split("ID")
    return [
        Workload(
            "list",
            f"'{request_head('GET', page, token)}'",
            200,
            f"SELECT {COLUMNS} FROM pets WHERE status BETWEEN :status AND :status AND id > :after "
            "ORDER BY status, id LIMIT :limit;",
        ),
        Workload(
            "get",
            f"'{before}' .. math.random({pets}) .. '{after}'",
            200,
            f"\\set id random(1, {pets})\nSELECT {COLUMNS} FROM pets WHERE id BETWEEN :id AND :id ORDER BY id;",
        ),
        Workload(
            "create",
            create_request(token),
            201,
            "\\set name random(1, 9000000000000000000)\n\\set category random(10, 99)\n"
            "INSERT INTO pets (name, category_id, status) VALUES (:name, :category, :status) RETURNING id;",
        ),
        Workload("create with a key", create_request(token, keyed=True), 201),
        Workload("unauthorized", f"'{request_head('GET', page, 'unknown-token')}'", 401),
    ]


class Bench:
    def __init__(self, place: Workplace, options: argparse.Namespace):
        self.place, self.options = place, options
        self.postgres = Postgres(place)
        self.redis = Redis(place)
        settings = self.postgres.create_pets("bench", options.pets) | self.redis.settings
        token = run(place.program, "keys", "create", "--label", "bench", env=settings, cwd=place.folder).strip()
        self.service = Service(place, "service", settings)
        self.workloads = workloads(token, options.pets)
        self.errors = 0
        self.others = []

    def warm_up(self, workload: Workload) -> None:
        result = self.wrk(workload, WARM_UP_SECONDS, check=True)
        if result["unexpected"] or result["failed"] or not result["requests"]:
            log = self.service.log.read_text()[-1000:]
            sys.exit(f"{workload.name}: unexpected responses: {result}\n{log}")

    def measure(self, workload: Workload) -> list[float]:
        """Returns a row of the table."""
        with self.metered() as cost:
            result = self.wrk(workload, self.options.seconds)
        requests, refused = result["requests"], result["refused"]
        self.errors += result["failed"] + (refused if workload.status < 400 else requests - refused)
        row = [requests / result["seconds"], result["p50"], result["p99"]]
        row += [cost[name] * 1000 / requests for name in ("service", "PostgreSQL", "Redis")]
        if workload.sql:
            with self.metered() as cost:
                transactions, rate = self.pgbench(workload)
            row += [rate, cost["PostgreSQL"] * 1000 / transactions]
        return row

    @contextmanager
    def metered(self) -> Iterator[dict[str, float]]:
        """Yields a dictionary that has the CPU seconds of the `with` block when the block ends."""
        before, cost = self.times(), {}
        yield cost
        cost.update({name: now - before[name] for name, now in self.times().items()})
        self.others.append((cost["machine"] - cost["bench"]) / cost["capacity"])

    def times(self) -> dict[str, float]:
        user, nice, system, _idle, _waiting, *others = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
        return {
            "service": self.service.cpu_seconds(),
            "PostgreSQL": self.postgres.cpu_seconds(),
            "Redis": self.redis.cpu_seconds(),
            "bench": cpu_seconds(os.getpid()),
            "machine": sum(map(int, (user, nice, system, *others))) / CLOCK_TICKS,
            "capacity": time.monotonic() * os.cpu_count(),
        }

    def wrk(self, workload: Workload, seconds: int, check: bool = False) -> dict[str, float]:
        load = (workload.request, workload.status, seconds, self.options.connections, check)
        return wrk(self.place, self.service, *load)

    def pgbench(self, workload: Workload) -> tuple[int, float]:
        """Returns the number of transactions, and transactions per second."""
        script = self.place.folder / "pgbench.sql"
        script.write_text(workload.sql)
        variables = ["-D", "status=1", "-D", "after=0", "-D", "limit=20"]
        load = [*PGBENCH, *variables, "-f", script, "-T", str(self.options.seconds), self.postgres.url("bench")]
        environment = {"PGOPTIONS": " ".join(f"-c {plan}" for plan in PLANS)}
        output = run(self.postgres.programs / "pgbench", *load, env=environment)
        return int(re.search(r"processed: (\d+)", output)[1]), float(re.search(r"tps = ([\d.]+)", output)[1])

    def environment(self) -> str:
        wrk_version = subprocess.run(["wrk", "--version"], capture_output=True, text=True).stdout  # exit code 1
        versions = [run(self.place.program, "--version"), run(self.postgres.programs / "postgres", "--version")]
        versions += [run("redis-server", "--version"), wrk_version]
        names = ", ".join(re.match(r"(\S+).*?([\d.]+)", version).expand(r"\1 \2") for version in versions)
        others = f"median {statistics.median(self.others):.0%}, at most {max(self.others):.0%}"
        return f"{names}; Linux {platform.release()}, {os.cpu_count()} CPUs, used by other processes: {others}"


def measure(place: Workplace, options: argparse.Namespace) -> None:
    bench = Bench(place, options)
    for workload in bench.workloads:
        bench.warm_up(workload)
    rounds = [[bench.measure(workload) for workload in bench.workloads] for _ in range(options.rounds)]
    print(
        "| workload | requests/s | p50 ms | p99 ms | CPU s for 1000: service | PostgreSQL | Redis "
        "| pgbench: transactions/s | CPU s for 1000: PostgreSQL |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for workload, rows in zip(bench.workloads, zip(*rounds, strict=True), strict=True):
        medians = map(statistics.median, zip(*rows, strict=True))
        cells = [form.format(median) for form, median in zip(FORMATS, medians)]
        print(f"| {workload.name} | {' | '.join(cells + ['–'] * (len(FORMATS) - len(cells)))} |")
    print(f"\n{bench.errors} errors; {bench.environment()}")
    if bench.errors:
        sys.exit(1)
