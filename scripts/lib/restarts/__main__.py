"""The part of scripts/restarts that runs after the installation."""

import argparse
import asyncio
import functools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from restarts.activation import restart_behind, restart_on_a_socket
from restarts.proxy_programs import Caddy, Nginx
from restarts.report import report
from restarts.results import Results
from restarts.rolling import restart_behind_haproxy

SCENARIOS = {
    "socket": restart_on_a_socket, "rolling": restart_behind_haproxy,
    "nginx": functools.partial(restart_behind, Nginx), "caddy": functools.partial(restart_behind, Caddy),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/restarts")
    parser.add_argument("program", type=Path)
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--only", choices=SCENARIOS)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    version = subprocess.run([options.program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)  # PostgreSQL runs as another user
        try:
            results = asyncio.run(interruptible(run(Path(folder), options)))
        except asyncio.CancelledError:
            return 130
        except Exception:
            print_logs(Path(folder))
            raise
    text = report(results, version, options.connections)
    print(text, end="")
    if options.report:
        options.report.write_text(text)
    return 1 if any(each.problems() for each in results) else 0


def print_logs(folder: Path) -> None:
    """Prints the last lines of each program."""
    for log in sorted(folder.rglob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-20:]
        print(f"== {log.relative_to(folder)}", *lines, sep="\n", file=sys.stderr)


async def run(folder: Path, options: argparse.Namespace) -> list[Results]:
    number = signal.SIGKILL if options.kill else signal.SIGTERM
    results = []
    for name, scenario in SCENARIOS.items():
        if options.only in (None, name):
            print(f"== {name}", flush=True)
            subfolder = folder / name
            subfolder.mkdir()
            results.append(await scenario(subfolder, options.program, options.restarts, options.connections, number))
    return results


async def interruptible(task):
    """Cancels the run at SIGINT, SIGTERM and SIGHUP, so that it stops its servers. A second signal does not interrupt
    that."""
    task = asyncio.ensure_future(task)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, lambda: task.cancelling() or task.cancel())
    return await task


if __name__ == "__main__":
    sys.exit(main())
