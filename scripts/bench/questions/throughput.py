"""How many requests per second does the service respond to, and at which CPU cost?

Pets are in PostgreSQL (durable: set TMPDIR to a folder on a disk), keys in Redis. In interleaved rounds, wrk drives the
service to its limit, and pgbench runs the same queries without the service, over 20 connections, with the plans of the
service. Prints medians: requests per second and latencies as wrk measures them, CPU seconds for 1000 requests, and the
figures of pgbench beside them. The service adds a batch of pets per statement, pgbench one.

The last line has the share of the CPUs that other processes used. Ends with exit code 1 if a response is missing or
has another status than expected.
"""

import argparse
import statistics
import sys

from load import request_head, wrk
from meter import Meter
from servers import Postgres, Redis, Service, Workplace, run
from workloads import PAGE, Workload, pgbench, reads, writes

PROGRAMS = ("wrk", "redis-server")
OPTIONS = {
    "rounds": (5, "rounds of all workloads"),
    "seconds": (5, "seconds per measurement"),
    "pets": (1_000_000, "pets in the table at the start"),
    "connections": (64, "connections of wrk"),
}
WARM_UP_SECONDS = 2
PGBENCH_CLIENTS = 20
# One per column of the table.
FORMATS = ["{:,.0f}", "{:.2f}", "{:.2f}", "{:.4f}", "{:.4f}", "{:.4f}", "{:,.0f}", "{:.4f}"]


class Bench:
    def __init__(self, place: Workplace, options: argparse.Namespace):
        self.place, self.options = place, options
        self.postgres = Postgres(place)
        redis = Redis(place)
        settings = self.postgres.create_pets("bench", options.pets) | redis.settings
        token = run(place.program, "keys", "create", "--label", "bench", env=settings, cwd=place.folder).strip()
        self.service = Service(place, "service", settings)
        unauthorized = Workload("unauthorized", f"'{request_head('GET', PAGE, 'unknown-token')}'", 401)
        self.workloads = [*reads(token, options.pets), *writes(token), unauthorized]
        self.meter = Meter({"service": self.service, "PostgreSQL": self.postgres, "Redis": redis})
        self.errors = 0

    def warm_up(self, workload: Workload) -> None:
        result = self.wrk(workload, WARM_UP_SECONDS, check=True)
        if result["unexpected"] or result["failed"] or not result["requests"]:
            log = self.service.log.read_text()[-1000:]
            sys.exit(f"{workload.name}: unexpected responses: {result}\n{log}")

    def measure(self, workload: Workload) -> list[float]:
        """Returns a row of the table."""
        with self.meter.metered() as cost:
            result = self.wrk(workload, self.options.seconds)
        requests, refused = result["requests"], result["refused"]
        self.errors += result["failed"] + (refused if workload.status < 400 else requests - refused)
        row = [requests / result["seconds"], result["p50"], result["p99"]]
        row += [cost[name] * 1000 / requests for name in ("service", "PostgreSQL", "Redis")]
        if workload.sql:
            with self.meter.metered() as cost:
                transactions, rate = self.pgbench(workload)
            row += [rate, cost["PostgreSQL"] * 1000 / transactions]
        return row

    def wrk(self, workload: Workload, seconds: int, check: bool = False) -> dict[str, float]:
        load = (workload.request, workload.status, seconds, self.options.connections, check)
        return wrk(self.place, self.service, *load)

    def pgbench(self, workload: Workload) -> tuple[int, float]:
        return pgbench(self.place, self.postgres, workload, PGBENCH_CLIENTS, f"-T{self.options.seconds}")


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
    print(f"\n{bench.errors} errors; {bench.meter.environment(place, bench.postgres)}")
    if bench.errors:
        sys.exit(1)
