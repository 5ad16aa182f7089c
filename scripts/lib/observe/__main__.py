"""The part of scripts/observe that runs after the installation: `python3 -m observe PROGRAM SECONDS [FIGURE]`."""

import asyncio
import signal
import sys
import tempfile
from pathlib import Path

from observe.report import report
from observe.runner import observe


def main(program: str, seconds: str, figure: str = "") -> int:
    with tempfile.TemporaryDirectory() as folder:
        try:
            results = asyncio.run(interruptible(observe(Path(folder), Path(program), float(seconds))))
        except asyncio.CancelledError:
            return 130
    print(report(results))
    if figure:
        Path(figure).write_text(results.figure)
    return 1 if results.problems else 0


async def interruptible(run):
    """Cancels the run at SIGINT, SIGTERM and SIGHUP, so that it stops its servers. A second signal does not interrupt
    that."""
    task = asyncio.ensure_future(run)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, lambda: task.cancelling() or task.cancel())
    return await task


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
