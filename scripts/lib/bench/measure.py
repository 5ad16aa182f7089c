"""The CPU time, the rate and the latencies of one or two programs, in interleaved rounds."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from harness.servers import Postgres, Redis, Server, children, run
from harness.service import Instance, KeyCommands, environment, shared_storage

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP_SECONDS, THREADS = 2, 2
# The workloads of load.lua, with the status of each response.
WORKLOADS = {"list of 20 by status": 200, "get": 200, "create": 201, "create with a key": 201, "401": 401}
SERVERS = ("service", "postgres", "redis")
# Of twenty pets, twelve are available, three pending, four sold, and one has no status.
PETS = """
    INSERT INTO pets (name, category_id, status)
    SELECT 'pet-' || n, n % 50,
           CASE WHEN n % 20 < 12 THEN 1 WHEN n % 20 < 15 THEN 2 WHEN n % 20 < 19 THEN 3 END
    FROM generate_series(1, {}) AS n"""

# Requests per second, milliseconds of latency, and CPU seconds for 1000 requests: of all servers and of each.
Measurement = dict[str, float]


class Bench:
    """The measurements of each workload: one of each program, by its name, in each round."""

    def __init__(self, folder: Path, programs: dict[str, Path], options: argparse.Namespace):
        self.folder, self.options, self.programs, self.token = folder, options, programs, ""
        self.postgres, self.redis = Postgres(folder, max_connections=300), Redis(folder, durable=False)
        self.instances: dict[str, Instance] = {}
        self.results: dict[str, list[dict[str, Measurement]]] = {workload: [] for workload in WORKLOADS}
        self.errors, self.others = 0, []  # shares of the CPUs that other processes used

    async def run(self) -> None:
        try:
            await self.postgres.create()
            await self.redis.start()
            for name, program in self.programs.items():
                await self.start(name, program)
            for workload, status in WORKLOADS.items():
                for instance in self.instances.values():
                    result = await self.send(instance, workload, WARM_UP_SECONDS, status)
                    if result["unexpected"] or result["failed"] or not result["requests"]:
                        sys.exit(f"{instance.name}, {workload}: unexpected responses: {result}")
            for number in range(self.options.rounds):
                for workload, results in self.results.items():
                    names = list(self.instances)[:: -1 if number % 2 else 1]
                    results.append({name: await self.measure(workload, self.instances[name]) for name in names})
        finally:
            for server in (*self.instances.values(), self.redis, self.postgres):
                await server.discard()

    async def start(self, name: str, program: Path) -> None:
        """Starts a program with a database of its own."""
        settings = shared_storage(self.postgres.url(database=name), self.redis.port)
        await self.postgres.sql(f"CREATE DATABASE {name}", database="postgres")
        await run(program, "migrate", env=environment(settings), cwd=self.folder)
        await self.postgres.sql(PETS.format(self.options.pets), "VACUUM (ANALYZE) pets", "CHECKPOINT", database=name)
        self.token = self.token or await KeyCommands(program, self.folder, settings).create("bench")
        self.instances[name] = Instance(self.folder, name, program, settings)
        await self.instances[name].start()

    async def send(self, instance: Instance, workload: str, seconds: int, *status: int) -> dict:
        connections = self.options.connections
        load = ["-t", min(THREADS, connections), "-c", connections, "-d", f"{seconds}s"]
        load += ["-s", Path(__file__).with_name("load.lua"), f"http://127.0.0.1:{instance.port}", "--"]
        output = await run("wrk", *load, workload, self.token, self.options.pets, f"{time.time_ns():x}", *status)
        return json.loads(output.splitlines()[-1])

    async def measure(self, workload: str, instance: Instance) -> Measurement:
        servers = (instance, self.postgres, self.redis)
        before = times(servers)
        result = await self.send(instance, workload, self.options.seconds)
        *used, own, machine, capacity = (after - start for start, after in zip(before, times(servers)))
        self.others.append((machine - own) / capacity)
        requests, refused = result["requests"], result["refused"]
        self.errors += result["failed"] + (refused if WORKLOADS[workload] < 400 else requests - refused)
        cpu = {name: seconds * 1000 / requests for name, seconds in zip(SERVERS, used)}
        rate = requests / result["seconds"]
        return cpu | {"cpu": sum(cpu.values()), "rate": rate, "p50": result["p50"], "p99": result["p99"]}

    def median(self, workload: str, name: str, field: str) -> float:
        return median(found[name][field] for found in self.results[workload])

    def ratio(self, workload: str, field: str) -> float:
        """The median of the ratios of each round, of the program to the one before."""
        return median(found["now"][field] / found["before"][field] for found in self.results[workload])


def times(servers: Sequence[Server]) -> list[float]:
    """CPU seconds of the servers, of this process with its descendants, of everything, and what the CPUs can give."""
    user, nice, system, _idle, _waiting, *others = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    machine = sum(map(int, (user, nice, system, *others))) / CLOCK_TICKS
    own = [cpu_seconds(server.pid) for server in servers]
    return [*own, cpu_seconds(os.getpid()), machine, time.monotonic() * os.cpu_count()]


def cpu_seconds(process: int) -> float:
    """CPU seconds of a process, of its descendants, and of those children that they have waited for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / CLOCK_TICKS + sum(map(cpu_seconds, children(process)))
