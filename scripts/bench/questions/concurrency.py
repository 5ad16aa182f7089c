"""How does the CPU cost of a read depend on the number of client connections?

Pets are in PostgreSQL, keys in Redis. In interleaved rounds, wrk sends lists and gets over 1 to 256 connections to the
service, to the program before (`--before`) and to a peer (`--peer`). pgbench runs the same queries with the plans of
the service, with one client per connection, at most 64. The CPU time is that of the server, PostgreSQL and Redis, with
what they use when they are idle, but without the time in which pgbench connects. All servers run all the time, each
with its own database.

Then one client sends requests to the service and to the program before in turn, over one connection each, and measures
the latency. Prints medians over the rounds; a ratio is the median of the ratios of each round. `--out` writes every
measurement to a file, from which `scripts/bench/figure` draws.

The peer is a program of the interface `/v1/pets`. It gets PORT, DATABASE_URL (an empty database), REDIS_URL, API_KEY
and PETS in its environment, creates as many pets as PETS says, accepts the key, and listens on 127.0.0.1. A shell
script that ends with `exec SERVER` does. The name of its file is the name in the table.

Ends with exit code 1 if a response is missing or has another status than 200.
"""

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial

from load import timed_get, wrk
from meter import Meter
from servers import HttpServer, Peer, Postgres, Redis, Service, Workplace, run
from workloads import PAGE, Workload, pgbench, reads

PROGRAMS = ("wrk", "redis-server")
OPTIONS = {
    "rounds": (5, "rounds of all measurements"),
    "seconds": (2, "seconds per measurement"),
    "requests": (4_000, "requests per server, workload and round for the latency"),
    "pets": (1_000_000, "pets in each database"),
    "before": (None, "the binary of the program before"),
    "peer": (None, "a program that prepares and starts a peer"),
    "out": (None, "the file for all measurements, in JSON"),
}
CONNECTIONS = (1, 4, 16, 64, 256)
PGBENCH_CLIENTS = 64
# The databases of all servers fit into memory.
POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
SERVICE, BEFORE, PGBENCH = "animal store", "before", "pgbench"
NAMES = {"list": "list of 20 by status", "get": "get"}
WARM_UP = {"seconds": 1, "connections": 64}


@dataclass(frozen=True)
class Cost:
    """CPU seconds for 1000 requests, of one measurement."""

    round: int
    workload: str
    server: str
    connections: int
    requests: int
    requests_per_second: float
    server_cpu: float
    postgres_cpu: float
    redis_cpu: float

    @property
    def cpu(self) -> float:
        return self.server_cpu + self.postgres_cpu + self.redis_cpu


@dataclass(frozen=True)
class Latency:
    """Median and 99th percentile in microseconds over one connection, of one round."""

    round: int
    workload: str
    server: str
    p50: float
    p99: float


class Bench:
    def __init__(self, place: Workplace, options: argparse.Namespace):
        self.place, self.options = place, options
        self.postgres, redis = Postgres(place, **POSTGRES), Redis(place)
        settings = self.postgres.create_pets("bench", options.pets) | redis.settings
        self.token = run(place.program, "keys", "create", "--label", "bench", env=settings, cwd=place.folder).strip()
        self.servers: dict[str, HttpServer] = {SERVICE: Service(place, "service", settings)}
        if options.before:
            program = options.before.resolve(strict=True)
            settings = self.postgres.create_pets("before", options.pets, program) | redis.settings
            self.servers[BEFORE] = Service(place, "before", settings, program)
        if options.peer:
            self.postgres.sql("postgres", "CREATE DATABASE peer")
            settings = {"DATABASE_URL": self.postgres.url("peer"), "REDIS_URL": redis.url}
            settings |= {"API_KEY": self.token, "PETS": str(options.pets)}
            peer = Peer(place, options.peer.resolve(strict=True), settings, f"/v1/pets{PAGE}")
            self.servers[options.peer.stem] = peer
        self.meter = Meter(self.servers | {"PostgreSQL": self.postgres, "Redis": redis})
        self.workloads = reads(self.token, options.pets)
        self.errors = 0

    def warm_up(self) -> None:
        for workload in self.workloads:
            for name, server in self.servers.items():
                result = wrk(self.place, server, workload.request, workload.status, check=True, **WARM_UP)
                if result["unexpected"] or result["failed"] or not result["requests"]:
                    log = server.log.read_text()[-1000:]
                    sys.exit(f"{name}, {workload.name}: unexpected responses: {result}\n{log}")

    def costs(self, number: int) -> Iterator[Cost]:
        """Measures a round. The order of the servers differs from round to round."""
        names = [*self.servers, PGBENCH]
        start = number % len(names)
        for workload in self.workloads:
            for connections in CONNECTIONS:
                for name in names[start:] + names[:start]:
                    yield self.cost(number, workload, name, connections)

    def cost(self, number: int, workload: Workload, name: str, connections: int) -> Cost:
        if name == PGBENCH:
            return self.pgbench_cost(number, workload, connections)
        with self.meter.metered() as used:
            load = (workload.request, workload.status, self.options.seconds, connections)
            result = wrk(self.place, self.servers[name], *load)
        requests = result["requests"]
        self.errors += result["failed"] + result["refused"]
        cpu = [used[user] * 1000 / requests for user in (name, "PostgreSQL", "Redis")]
        return Cost(number, workload.name, name, connections, requests, requests / result["seconds"], *cpu)

    def pgbench_cost(self, number: int, workload: Workload, connections: int) -> Cost:
        """Measures pgbench, less a run with one transaction per client, which connects and plans."""
        run_pgbench = partial(pgbench, self.place, self.postgres, workload, min(connections, PGBENCH_CLIENTS))
        start = self.postgres.cpu_seconds()
        first, _ = run_pgbench("-t1")
        cpu_of_first = self.postgres.cpu_seconds() - start
        with self.meter.metered() as used:
            requests, rate = run_pgbench(f"-T{self.options.seconds}")
        requests -= first
        cpu = (used["PostgreSQL"] - cpu_of_first) * 1000 / requests
        return Cost(number, workload.name, PGBENCH, connections, requests, rate, 0, cpu, 0)

    def latencies(self, number: int) -> Iterator[Latency]:
        """Measures a round, in which each request is sent to the service and to the program before, in turn."""
        connections = {name: self.servers[name].connect() for name in (SERVICE, BEFORE)}
        for workload in self.workloads:
            times = {name: [] for name in connections}
            for _ in range(self.options.requests):
                target = PAGE if workload.name == "list" else f"/{random.randint(1, self.options.pets)}"
                for name, connection in connections.items():
                    times[name].append(timed_get(connection, target, self.token))
            for name, values in times.items():
                p99 = sorted(values)[len(values) * 99 // 100]
                yield Latency(number, workload.name, name, statistics.median(values), p99)
        for connection in connections.values():
            connection.close()


def by_round(costs: list[Cost], workload: str, server: str, connections: int) -> list[float]:
    """Returns the CPU seconds for 1000 requests in each round."""
    wanted = (workload, server, connections)
    return [cost.cpu for cost in costs if (cost.workload, cost.server, cost.connections) == wanted]


def ratio(values: list[float], others: list[float]) -> float:
    return statistics.median(value / other for value, other in zip(values, others, strict=True))


def print_costs(costs: list[Cost]) -> None:
    servers = list(dict.fromkeys(cost.server for cost in sorted(costs, key=lambda cost: cost.round)))
    print(f"| workload | CPU s for 1000 | {' | '.join(map(str, CONNECTIONS))} |\n|---|---|{'---:|' * len(CONNECTIONS)}")
    for workload, title in NAMES.items():
        rows = {server: [by_round(costs, workload, server, count) for count in CONNECTIONS] for server in servers}
        for server, cells in rows.items():
            print(f"| {title} | {server} | {' | '.join(f'{statistics.median(cell):.4f}' for cell in cells)} |")
        for server in servers[1:]:
            ratios = [ratio(*pair) for pair in zip(rows[SERVICE], rows[server], strict=True)]
            print(f"| {title} | ratio to {server} | {' | '.join(f'{value:.2f}' for value in ratios)} |")


def print_latencies(latencies: list[Latency]) -> None:
    print("\n| workload | p50 µs | before | ratio | p99 µs | before | ratio |\n|---|---:|---:|---:|---:|---:|---:|")
    for workload, title in NAMES.items():
        cells = []
        for percentile in ("p50", "p99"):
            now, before = (
                [getattr(each, percentile) for each in latencies if (each.workload, each.server) == (workload, server)]
                for server in (SERVICE, BEFORE)
            )
            cells += [f"{statistics.median(now):.0f}", f"{statistics.median(before):.0f}", f"{ratio(now, before):.2f}"]
        print(f"| {title} | {' | '.join(cells)} |")


def measure(place: Workplace, options: argparse.Namespace) -> None:
    bench = Bench(place, options)
    bench.warm_up()
    costs, latencies = [], []
    for number in range(options.rounds):
        costs += bench.costs(number)
        if options.before:
            latencies += bench.latencies(number)
    environment = bench.meter.environment(place, bench.postgres)
    if options.out:
        result = {"environment": environment, "seconds": options.seconds, "pets": options.pets}
        result |= {"costs": [asdict(cost) for cost in costs], "latencies": [asdict(each) for each in latencies]}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print_costs(costs)
    if latencies:
        print_latencies(latencies)
    print(f"\n{bench.errors} errors; {environment}")
    if bench.errors:
        sys.exit(1)
