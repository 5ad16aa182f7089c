"""The CPU time of the servers of a measurement, and the share of the CPUs that other processes use."""

import os
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers import CLOCK_TICKS, Postgres, Server, Workplace, cpu_seconds, run


class Meter:
    """Measures the CPU seconds of `servers`, by name."""

    def __init__(self, servers: dict[str, Server]):
        self.servers = servers
        self.others = []

    @contextmanager
    def metered(self) -> Iterator[dict[str, float]]:
        """Yields a dictionary that has the CPU seconds of the `with` block when the block ends."""
        before, cost = self.times(), {}
        yield cost
        cost.update({name: now - before[name] for name, now in self.times().items()})
        self.others.append((cost["machine"] - cost["bench"]) / cost["capacity"])

    def times(self) -> dict[str, float]:
        user, nice, system, _idle, _waiting, *others = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
        return {name: server.cpu_seconds() for name, server in self.servers.items()} | {
            "bench": cpu_seconds(os.getpid()),
            "machine": sum(map(int, (user, nice, system, *others))) / CLOCK_TICKS,
            "capacity": time.monotonic() * os.cpu_count(),
        }

    def environment(self, place: Workplace, postgres: Postgres) -> str:
        """Returns the versions of the programs, and the share of other processes in all measurements."""
        wrk_version = subprocess.run(["wrk", "--version"], capture_output=True, text=True).stdout  # exit code 1
        versions = [run(place.program, "--version"), run(postgres.programs / "postgres", "--version")]
        versions += [run("redis-server", "--version"), wrk_version]
        names = ", ".join(re.match(r"(\S+).*?([\d.]+)", version).expand(r"\1 \2") for version in versions)
        others = f"median {statistics.median(self.others):.0%}, at most {max(self.others):.0%}"
        return f"{names}; Linux {platform.release()}, {os.cpu_count()} CPUs, used by other processes: {others}"
