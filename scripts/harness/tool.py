"""What the programs in scripts/ have in common: installation, the service's binary, signals and the report."""

import argparse
import asyncio
import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from harness.require import require
from harness.servers import CommandError

REPOSITORY = Path(__file__).resolve().parents[2]
EPILOG = "ANIMAL_STORE_BINARY names the program, or it is built. Missing packages are installed as by scripts/check."


def service_program(release: bool = False) -> Path:
    """The program that ANIMAL_STORE_BINARY names, or a new build."""
    if binary := os.environ.get("ANIMAL_STORE_BINARY"):
        return Path(binary).resolve(strict=True)
    build = ["cargo", "build", "--quiet", "--locked", "--package", "animal-store-server"]
    if release:
        # Reports name the commit that they ran on.
        call(*build, "--release", ANIMAL_STORE_COMMIT=commit())
    else:
        call(*build)
    return target_folder() / ("release" if release else "debug") / "animal-store"


def target_folder() -> Path:
    return REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target")


def parser_of(documentation: str, epilog: str = EPILOG) -> argparse.ArgumentParser:
    as_written = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=documentation, epilog=epilog, formatter_class=as_written)


def run_check(check: Callable[[Path, Path], Coroutine], *requirements: str, release: bool = False) -> int:
    """Installs what a check of the service needs, and runs it with a folder and the program. Returns the exit code,
    which is 0 if the check returns none."""
    require("c-compiler", *requirements)
    program = service_program(release)
    code = run_in_folder(lambda folder: check(folder, program))
    if code is None:
        print(f"\nscripts/{Path(sys.argv[0]).name} passed")
    return code or 0


def say(title: str) -> None:
    print(f"== {title}", flush=True)


def call(*command: object, cwd: Path = REPOSITORY, **variables: object) -> None:
    """Runs a command with further variables; its output is that of this program. Raises CalledProcessError."""
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    subprocess.run([*map(str, command)], cwd=cwd, env=environment, check=True)


def install_python(tool: str) -> Path:
    """Installs the packages of scripts/TOOL/requirements.txt in target/tools, where they stay. This process can import
    them, and finds their programs in PATH. Returns the folder of the programs."""
    folder = target_folder() / "tools" / tool
    pins, installed = REPOSITORY / "scripts" / tool / "requirements.txt", folder / "requirements.txt"
    if not installed.exists() or installed.read_text() != pins.read_text():
        call(sys.executable, "-m", "venv", "--clear", folder)
        call(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", pins)
        shutil.copy(pins, installed)
    site.addsitedir(str(next(folder.glob("lib/python*/site-packages"))))
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
    return folder / "bin"


def install_npm(tool: str, folder: Path) -> Path:
    """Installs the packages of scripts/TOOL/package-lock.json in a copy of scripts/TOOL, which it returns."""
    copy = shutil.copytree(REPOSITORY / "scripts" / tool, folder / tool)
    call("npm", "ci", "--ignore-scripts", "--loglevel", "error", "--no-fund", "--no-audit", cwd=copy)
    return copy


def commit(name: str = "HEAD") -> str:
    """The short id of a commit, or of the commit of a tag."""
    command = ["git", "rev-parse", "--short=9", f"{name}^{{commit}}"]
    return subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.strip()


def version(program: Path) -> str:
    return subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()


def run_in_folder(start: Callable[[Path], Coroutine]) -> Any:
    """Runs a coroutine in a temporary folder. At SIGINT, SIGTERM and SIGHUP it is cancelled, so that it stops its
    servers. If it fails, the ends of their logs are printed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL runs as another user
        try:
            return asyncio.run(interruptible(start(folder)))
        except asyncio.CancelledError:
            sys.exit(130)
        except Exception as error:
            for log in sorted(folder.rglob("*.log")):
                lines = [line for line in log.open(errors="replace") if '"message":"request"' not in line]
                print(f"== {log.relative_to(folder)}\n{''.join(lines[-20:])}", file=sys.stderr)
            if isinstance(error, (CommandError, subprocess.CalledProcessError)):
                sys.exit(f"FAILED: {error}")
            raise


async def interruptible(run: Coroutine) -> Any:
    """A second signal does not interrupt the end of the servers."""
    task = asyncio.ensure_future(run)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, lambda: task.cancelling() or task.cancel())
    return await task
