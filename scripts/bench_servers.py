"""What the benches share: servers of their own, on free ports of 127.0.0.1, and the CPU time of processes."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

BINARY = Path(__file__).resolve().parent.parent / "target/release/animal-store"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

# Of every twenty, twelve are available, three pending, four sold, and one has no status.
SEED = """
    INSERT INTO pets (name, category_id, status)
    SELECT 'animal-' || n, n % 50,
           CASE WHEN n % 20 < 12 THEN 1 WHEN n % 20 < 15 THEN 2 WHEN n % 20 < 19 THEN 3 END
    FROM generate_series(1, {}) AS n"""


@contextmanager
def workplace(*programs: str) -> Iterator[tuple[Path, ExitStack]]:
    """A temporary folder, and a stack for what runs in it. Both are cleared however the bench ends."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        sys.exit(f"Missing: {', '.join(missing)}; apt-get install {' '.join(missing)}")
    if not BINARY.exists():
        sys.exit(f"There is no {BINARY}: cargo build --release")
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) == signal.SIG_DFL:
            signal.signal(each, lambda number, _: sys.exit(128 + number))
    try:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            yield Path(folder), stack
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} failed:\n{error.stdout}{error.stderr}")


def run(*command: object, **options) -> str:
    """What a command prints. It has to succeed."""
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class Server:
    """A program that runs until the `with` ends, with its log in a file."""

    end = signal.SIGTERM

    def __init__(self, command: list, log: Path, ready: str, **options):
        """Waits until the log has the regular expression `ready`."""
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, **options)
        try:
            while not (match := re.search(ready, log.read_text())):
                self.check()
                time.sleep(0.01)
        except BaseException:
            self.__exit__()
            raise
        self.ready = match

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.process.send_signal(self.end)
        self.process.wait()

    def check(self) -> None:
        if self.process.poll() is not None:
            sys.exit(f"{self.process.args[0]} has ended:\n{self.log.read_text()[-3000:]}")

    def cpu_seconds(self) -> float:
        self.check()
        return cpu_seconds(self.process.pid)


class Postgres(Server):
    """A PostgreSQL server: durable and with the defaults, where `settings` do not say otherwise."""

    end = signal.SIGQUIT  # at once: nobody needs the data any more

    def __init__(self, folder: Path, **settings: object):
        self.folder = folder
        self.programs = postgres_programs()
        self.port = free_port()
        owner = {}
        if os.geteuid() == 0:  # as whom PostgreSQL refuses to run
            shutil.chown(folder, "postgres")
            owner = {"user": "postgres", "group": "postgres", "extra_groups": []}
        data = folder / "data"
        initdb = [self.programs / "initdb", "-D", data, "--no-sync", "--auth=trust", "--username=postgres"]
        run(*initdb, "--encoding=UTF8", "--locale=C.UTF-8", cwd=folder, **owner)
        settings = {"port": self.port, "unix_socket_directories": "", "max_connections": 300} | settings
        command = [self.programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in settings.items())]
        super().__init__(command, folder / "postgres.log", "ready to accept connections", cwd=folder, **owner)

    def url(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def sql(self, database: str, *statements: str) -> str:
        commands = (part for statement in statements for part in ("-c", statement))
        return run(self.programs / "psql", "-d", self.url(database), "-qAtX", "-v", "ON_ERROR_STOP=1", *commands)

    def animals(self, database: str, count: int) -> dict[str, str]:
        """Makes a database with animals 1 to `count`, and returns the settings of a service that has it."""
        self.sql("postgres", f"CREATE DATABASE {database}")
        settings = {
            "ANIMAL_STORE_STORAGE__BACKEND": "postgres",
            "ANIMAL_STORE_STORAGE__POSTGRES__URL": self.url(database),
        }
        run(BINARY, "migrate", env=settings, cwd=self.folder)
        self.sql(database, SEED.format(count), "VACUUM (ANALYZE) pets", "CHECKPOINT")
        return settings


class Redis(Server):
    """A Redis server that keeps nothing on disk."""

    def __init__(self, folder: Path):
        self.port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", folder, "--save", ""]
        super().__init__(command, folder / "redis.log", "Ready to accept")
        self.settings = {
            "ANIMAL_STORE_KEYS__BACKEND": "redis",
            "ANIMAL_STORE_KEYS__REDIS__URL": f"redis://127.0.0.1:{self.port}",
        }


class Service(Server):
    """The release binary, with the defaults where `settings` do not say otherwise."""

    def __init__(self, folder: Path, name: str, settings: dict[str, str]):
        command = [BINARY, "--listen", "127.0.0.1:0", "--set", "management.listen="]
        ready = r'"listening","address":"([\d.]+):(\d+)"'
        super().__init__(command, folder / f"{name}.log", ready, env=settings, cwd=folder)
        self.host, self.port = self.ready[1], int(self.ready[2])

    def measure(
        self, target: str, token: str, connections: int, *headers: str, mishaps: str = "Socket errors|Non-2xx"
    ) -> float:
        """CPU seconds for 1000 requests of wrk with these headers, which prints none of the mishaps."""
        before = self.cpu_seconds()
        load = ["-t1", f"-c{connections}", "-d3s", "-H", f"Authorization: Bearer {token}"]
        load += [part for header in headers for part in ("-H", header)]
        text = run("wrk", *load, f"http://{self.host}:{self.port}{target}")
        if re.search(mishaps, text):
            sys.exit(text)
        return (self.cpu_seconds() - before) * 1000 / int(re.search(r"(\d+) requests in", text)[1])


def postgres_programs() -> Path:
    """Where those of the PostgreSQL server are. Debian keeps them out of PATH."""
    if postgres := shutil.which("postgres"):
        return Path(postgres).resolve().parent
    installed = [postgres.parent for postgres in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not installed:
        sys.exit("There is no PostgreSQL: apt-get install postgresql")
    return max(installed, key=lambda programs: float(programs.parent.name))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def cpu_seconds(root: int) -> float:
    """CPU seconds so far of a process and all its descendants, those that have ended included."""
    # A process that ends meanwhile would be counted twice or not at all.
    while (ticks := ticks_by_process(root)).keys() != ticks_by_process(root).keys():
        pass
    return sum(ticks.values()) / CLOCK_TICKS


def ticks_by_process(root: int) -> dict[int, int]:
    """What a process and each of its descendants used, with what children used that it has waited for."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        process = int(stat.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))
    family, generation = set(), {root}
    while generation:
        family |= generation
        generation = {process for process, parent in parents.items() if parent in generation}
    return {process: ticks[process] for process in family}
