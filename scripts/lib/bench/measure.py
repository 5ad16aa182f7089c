"""The CPU time, the rate and the latencies of one or two programs, in interleaved rounds."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.wrk import Workload, workloads, wrk
from harness.servers import (
    CLOCK_TICKS, PETS, Instance, KeyCommands, Postgres, Redis, Server, cpu_seconds, environment, run, shared_storage,
)

WARM_UP_SECONDS = 2


@dataclass(frozen=True)
class Measurement:
    """Milliseconds of latency, and CPU seconds for 1000 requests."""

    rate: float
    p50: float
    p99: float
    service: float
    postgres: float
    redis: float

    @property
    def cpu(self) -> float:
        return self.service + self.postgres + self.redis


class Bench:
    """The measurements of each workload: one of each program, by its name, in each round."""

    def __init__(self, folder: Path, programs: dict[str, Path], options):
        self.folder, self.options, self.programs = folder, options, programs
        self.postgres, self.redis = Postgres(folder, max_connections=300), Redis(folder, durable=False)
        self.instances: dict[str, Instance] = {}
        self.results: dict[str, list[dict[str, Measurement]]] = {}
        self.errors, self.others = 0, []  # shares of the CPUs that other processes used

    async def run(self) -> None:
        try:
            await self.postgres.create()
            await self.redis.start()
            token = ""
            for name, program in self.programs.items():
                token = await self.start(name, program) or token
            loads = workloads(token, self.options.pets)
            for workload in loads:
                for instance in self.instances.values():
                    await self.warm_up(workload, instance)
            for number in range(self.options.rounds):
                for workload in loads:
                    names = list(self.instances)[:: -1 if number % 2 else 1]
                    found = {name: await self.measure(workload, name) for name in names}
                    self.results.setdefault(workload.name, []).append(found)
        finally:
            for server in (*self.instances.values(), self.redis, self.postgres):
                await server.discard()

    async def start(self, name: str, program: Path) -> str | None:
        """Starts a program with a database of its own. Returns the token of a key if it is the first one."""
        settings = shared_storage(self.postgres.url(database=name), self.redis.port)
        await self.postgres.sql(f"CREATE DATABASE {name}", database="postgres")
        await run(program, "migrate", env=environment(settings), cwd=self.folder)
        await self.postgres.sql(PETS.format(self.options.pets), "VACUUM (ANALYZE) pets", "CHECKPOINT", database=name)
        token = None if self.instances else await KeyCommands(program, self.folder, settings).create("bench")
        self.instances[name] = Instance(self.folder, name, program, settings)
        await self.instances[name].start()
        return token

    async def warm_up(self, workload: Workload, instance: Instance) -> None:
        load = (WARM_UP_SECONDS, self.options.connections, True)
        result = await wrk(self.folder, instance.port, workload, *load)
        if result["unexpected"] or result["failed"] or not result["requests"]:
            sys.exit(f"{instance.name}, {workload.name}: unexpected responses: {result}")

    async def measure(self, workload: Workload, name: str) -> Measurement:
        servers: tuple[Server, ...] = (self.instances[name], self.postgres, self.redis)
        before = times(servers)
        load = (self.options.seconds, self.options.connections)
        result = await wrk(self.folder, self.instances[name].port, workload, *load)
        *used, bench, machine, capacity = (after - start for start, after in zip(before, times(servers)))
        self.others.append((machine - bench) / capacity)
        requests, refused = result["requests"], result["refused"]
        self.errors += result["failed"] + (refused if workload.status < 400 else requests - refused)
        cpu = (seconds * 1000 / requests for seconds in used)
        return Measurement(requests / result["seconds"], result["p50"], result["p99"], *cpu)

    def median(self, workload: str, name: str, field: str) -> float:
        return median(getattr(found[name], field) for found in self.results[workload])

    def ratio(self, workload: str, field: str) -> float:
        """The median of the ratios of each round, of the program to the one before."""
        rounds = self.results[workload]
        return median(getattr(found["now"], field) / getattr(found["before"], field) for found in rounds)

    def rows(self) -> Iterator[tuple[str, ...]]:
        for workload in self.results:
            for name in self.programs:
                values = [self.median(workload, name, field) for field in FIELDS]
                yield workload, name, *(form.format(value) for form, value in zip(FIELDS.values(), values))


FIELDS = {
    "rate": "{:,.0f}", "p50": "{:.2f}", "p99": "{:.2f}", "service": "{:.4f}", "postgres": "{:.4f}", "redis": "{:.4f}",
}


def times(servers: tuple[Server, ...]) -> list[float]:
    """CPU seconds of the servers, of this process with its descendants, of everything, and what the CPUs can give."""
    user, nice, system, _idle, _waiting, *others = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    machine = sum(map(int, (user, nice, system, *others))) / CLOCK_TICKS
    own = [cpu_seconds(server.pid) for server in servers]
    return [*own, cpu_seconds(os.getpid()), machine, time.monotonic() * os.cpu_count()]
