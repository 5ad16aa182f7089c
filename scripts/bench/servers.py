"""The servers of a measurement and the CPU time that they use."""

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

# Of twenty pets, twelve are available, three pending, four sold, and one has no status.
PETS = """
    INSERT INTO pets (name, category_id, status)
    SELECT 'pet-' || n, n % 50,
           CASE WHEN n % 20 < 12 THEN 1 WHEN n % 20 < 15 THEN 2 WHEN n % 20 < 19 THEN 3 END
    FROM generate_series(1, {}) AS n"""


@dataclass
class Workplace:
    """The service's binary, a temporary folder, and the servers to stop at the end."""

    program: Path
    folder: Path
    stack: ExitStack


@contextmanager
def workplace(program: Path | None, needed: tuple[str, ...]) -> Iterator[Workplace]:
    missing = [name for name in needed if not shutil.which(name)]
    if missing:
        sys.exit(f"Missing: {', '.join(missing)}. Install them: apt-get install wrk redis-server")
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) == signal.SIG_DFL:
            signal.signal(each, lambda number, _: sys.exit(128 + number))
    try:
        program = program.resolve(strict=True) if program else build()
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            yield Workplace(program, Path(folder), stack)
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} failed:\n{error.stdout or ''}{error.stderr or ''}")


def build() -> Path:
    command = ["cargo", "build", "--release", "--locked", "--package", "animal-store-server"]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target") / "release/animal-store"


def run(*command: object, **options) -> str:
    """Returns the standard output of a command that succeeds."""
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class Server:
    """A process that runs until the measurement ends, with its log in a file."""

    stop_signal = signal.SIGTERM

    def __init__(self, place: Workplace, name: str, command: list, ready: str, **options):
        """Returns when the log matches the regular expression `ready`."""
        self.log = place.folder / f"{name}.log"
        with self.log.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, cwd=place.folder, **options)
        place.stack.callback(self.stop)
        while not (match := re.search(ready, self.log.read_text())):
            self.check_alive()
            time.sleep(0.01)
        self.ready = match

    def stop(self) -> None:
        self.process.send_signal(self.stop_signal)
        self.process.wait()

    def check_alive(self) -> None:
        if self.process.poll() is not None:
            sys.exit(f"{self.process.args[0]} has stopped:\n{self.log.read_text()[-3000:]}")

    def cpu_seconds(self) -> float:
        self.check_alive()
        return cpu_seconds(self.process.pid)


class Postgres(Server):
    """A PostgreSQL server with its defaults, durable writes among them, except for `settings`."""

    stop_signal = signal.SIGQUIT  # immediate: the data is deleted

    def __init__(self, place: Workplace, **settings: object):
        self.place = place
        self.programs = postgres_programs()
        self.port = free_port()
        owner = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(place.folder, "postgres")
            owner = {"user": "postgres", "group": "postgres", "extra_groups": []}
        data = place.folder / "data"
        initdb = [self.programs / "initdb", "-D", data, "--no-sync", "--auth=trust", "--username=postgres"]
        run(*initdb, "--encoding=UTF8", "--locale=C.UTF-8", cwd=place.folder, **owner)
        settings = {"port": self.port, "unix_socket_directories": "", "max_connections": 300} | settings
        command = [self.programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in settings.items())]
        super().__init__(place, "postgres", command, "ready to accept connections", **owner)

    def url(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def sql(self, database: str, *statements: str) -> str:
        commands = (part for statement in statements for part in ("-c", statement))
        return run(self.programs / "psql", "-d", self.url(database), "-qAtX", "-v", "ON_ERROR_STOP=1", *commands)

    def create_pets(self, database: str, count: int, program: Path | None = None) -> dict[str, str]:
        """Creates a database with the pets 1 to `count` and returns the settings of a service that uses it."""
        self.sql("postgres", f"CREATE DATABASE {database}")
        settings = {
            "ANIMAL_STORE_STORAGE__BACKEND": "postgres",
            "ANIMAL_STORE_STORAGE__POSTGRES__URL": self.url(database),
        }
        keys = {"ANIMAL_STORE_KEYS__BACKEND": "memory"}
        run(program or self.place.program, "migrate", env=settings | keys, cwd=self.place.folder)
        self.sql(database, PETS.format(count), "VACUUM (ANALYZE) pets", "CHECKPOINT")
        return settings


class Redis(Server):
    """A Redis server without persistence."""

    def __init__(self, place: Workplace):
        self.place = place
        self.port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", place.folder, "--save", ""]
        super().__init__(place, "redis", command, "Ready to accept")
        self.url = f"redis://127.0.0.1:{self.port}"
        self.settings = {"ANIMAL_STORE_KEYS__BACKEND": "redis", "ANIMAL_STORE_KEYS__REDIS__URL": self.url}


class HttpServer(Server):
    """A server of the interface, on a port of 127.0.0.1."""

    host = "127.0.0.1"
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def connect(self) -> socket.socket:
        connection = socket.create_connection((self.host, self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Service(HttpServer):
    """The service with its defaults except for `settings`."""

    stop_signal = signal.SIGINT  # without the drain delay

    def __init__(self, place: Workplace, name: str, settings: dict[str, str], program: Path | None = None):
        command = [program or place.program, "--listen", "127.0.0.1:0", "--set", "management.listen="]
        super().__init__(place, name, command, r'"listening","address":"127\.0\.0\.1:(\d+)"', env=settings)
        self.port = int(self.ready[1])


class Peer(HttpServer):
    """Another server of the interface: a program that prepares its database and its API key and then listens."""

    def __init__(self, place: Workplace, program: Path, settings: dict[str, str], path: str):
        """Returns when a GET request of `path` has the status 200."""
        self.port = free_port()
        environment = os.environ | settings | {"PORT": str(self.port)}
        super().__init__(place, program.stem, [program], "", env=environment)
        headers = {"Authorization": f"Bearer {settings['API_KEY']}"}
        request = urllib.request.Request(self.url + path, headers=headers)
        while not responds(request):
            self.check_alive()
            time.sleep(0.01)


def responds(request: urllib.request.Request) -> bool:
    try:
        with urllib.request.urlopen(request) as response:
            return response.status == 200
    except OSError:
        return False


def postgres_programs() -> Path:
    """Returns the folder of PostgreSQL's server programs, which Debian does not put into PATH."""
    if postgres := shutil.which("postgres"):
        return Path(postgres).resolve().parent
    installed = [postgres.parent for postgres in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not installed:
        sys.exit("PostgreSQL is missing: apt-get install postgresql")
    return max(installed, key=lambda programs: float(programs.parent.name))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def cpu_seconds(root: int) -> float:
    """CPU seconds of a process and all its descendants, stopped ones included."""
    # A process that ends during a scan can be counted twice or not at all. In the scan between two scans with the same
    # processes, none has ended.
    scans = [ticks_by_process(root) for _ in range(3)]
    while not scans[-3].keys() == scans[-2].keys() == scans[-1].keys():
        scans.append(ticks_by_process(root))
    return sum(scans[-2].values()) / CLOCK_TICKS


def wait_for_end(processes: set[int]) -> None:
    """Waits until the processes have ended, a second for each at most."""
    for process in processes:
        with suppress(ProcessLookupError), open(os.pidfd_open(process), "rb") as ended:
            select.select([ended], [], [], 1)


def ticks_by_process(root: int) -> dict[int, int]:
    """Ticks of a process and of each descendant, each with the ticks of its children that it has waited for."""
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
