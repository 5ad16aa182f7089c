"""Three PostgreSQL servers under Patroni, which keeps its state in Raft, with synchronous replication."""

import asyncio
import json
import os
import shutil
import signal
import urllib.request
from contextlib import suppress
from pathlib import Path

from harness.failover.network import POSTGRES
from harness.servers import Machine, Server, children, free_port, postgres_programs, run

# The smallest values that Patroni permits, in seconds. A primary that Patroni cannot confirm is replaced after the TTL.
TIMES = {"ttl": 20, "loop_wait": 1, "retry_timeout": 3}
TIMEOUT = 2.0  # of a request to Patroni
AS_POSTGRES = ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def as_postgres(folder: Path, command: list) -> list:
    """The command that owns the folder. PostgreSQL and PgBouncer refuse to run as root."""
    if os.geteuid():
        return command
    shutil.chown(folder, "postgres")
    return [*AS_POSTGRES, *command]


class Patroni(Server):
    """One PostgreSQL with its Patroni, whose API has `port`. Both start and are killed together, as their machine."""

    network = POSTGRES

    def __init__(self, folder: Path, name: str, machine: Machine):
        self.port, self.raft_port, self.postgres_port = free_port(), free_port(), free_port()
        home = folder / name
        home.mkdir()
        self.file, self.data = home / "patroni.json", home / "data"
        command = as_postgres(home, ["/usr/bin/patroni", self.file])
        super().__init__(home, name, command, machine, env={"HOME": str(home), "PATH": os.defpath})

    def signal_postgres(self, number: signal.Signals) -> None:
        """Sends a signal to PostgreSQL and its children, if it runs."""
        with suppress(OSError, ValueError, IndexError):
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
            if str(self.data) in Path(f"/proc/{pid}/cmdline").read_text():
                for process in (pid, *children(pid)):
                    os.kill(process, number)

    async def freeze(self) -> None:
        self.signal_postgres(signal.SIGSTOP)

    async def thaw(self) -> None:
        self.signal_postgres(signal.SIGCONT)

    def configure(self, others: list["Patroni"]) -> None:
        host, trust = self.machine.host, ["local all all trust", "host all all all trust"]
        self.file.write_text(json.dumps({
            "scope": "store", "name": self.name,
            "restapi": {"listen": f"{host}:{self.port}", "connect_address": f"{host}:{self.port}"},
            "raft": {
                "data_dir": str(self.folder), "self_addr": f"{host}:{self.raft_port}",
                "partner_addrs": [f"{other.machine.host}:{other.raft_port}" for other in others],
            },
            "bootstrap": {
                "dcs": TIMES | {"synchronous_mode": True, "postgresql": {"use_pg_rewind": True}},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}],
            },
            "postgresql": {
                "listen": f"{host}:{self.postgres_port}", "connect_address": f"{host}:{self.postgres_port}",
                "data_dir": str(self.data), "bin_dir": str(postgres_programs()),
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
                "pg_hba": [*trust, "host replication all all trust"],
                "parameters": {"unix_socket_directories": str(self.folder)},
            },
        }))

    async def kill(self) -> None:
        """Ends all processes at once, as a crash of the machine does."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self.signal_postgres(signal.SIGKILL)
        await self.process.wait()

    async def discard(self) -> None:
        if self.process:
            await self.kill()

    async def members(self) -> list[dict]:
        """The members of the cluster, as this one knows them."""

        def get() -> list[dict]:
            with urllib.request.urlopen(f"http://{self.machine.host}:{self.port}/cluster", timeout=TIMEOUT) as response:
                return json.load(response)["members"]

        return await asyncio.to_thread(get)


class Cluster:
    """The interface of an engine that fails over: `leader`, `is_healthy` and `switch_over`."""

    name, network = "postgres", POSTGRES

    def __init__(self, folder: Path, machines: list[Machine]):
        self.nodes = [Patroni(folder, f"db{number}", machine) for number, machine in enumerate(machines, 1)]
        for node in self.nodes:
            node.configure([other for other in self.nodes if other is not node])

    @property
    def url(self) -> str:
        """Of all servers: the client looks for the primary."""
        hosts = ",".join(f"{node.machine.host}:{node.postgres_port}" for node in self.nodes)
        return f"postgres://postgres@{hosts}/store"

    async def start(self) -> None:
        for node in self.nodes:
            await node.spawn()

    async def views(self) -> list[dict[str, dict]]:
        """The members by their roles, as each node that responds knows them."""
        views = await asyncio.gather(*(node.members() for node in self.nodes), return_exceptions=True)
        return [{member["role"]: member for member in view} for view in views if isinstance(view, list)]

    async def leader(self) -> Patroni | None:
        """The primary, if more than half of the nodes know it."""
        leaders = [view["leader"]["name"] for view in await self.views() if "leader" in view]
        return next((node for node in self.nodes if 2 * leaders.count(node.name) > len(self.nodes)), None)

    async def is_healthy(self) -> bool:
        """Returns true if all nodes know a primary, a synchronous standby and another one, on one timeline."""
        views = await self.views()
        states = {(member.get("state"), member.get("timeline")) for view in views for member in view.values()}
        roles = {tuple(sorted(view)) for view in views}
        alike = len({view["leader"]["name"] for view in views if "leader" in view}) == 1
        return len(views) == 3 and alike and roles == {("leader", "replica", "sync_standby")} and len(states) == 1

    async def switch_over(self) -> None:
        view = (await self.views())[0]
        leader, standby = view["leader"]["name"], view["sync_standby"]["name"]
        command = ["/usr/bin/patronictl", "-c", self.nodes[0].file, "switchover", "store", "--force"]
        await run(*command, "--master", leader, "--candidate", standby)

    async def sql(self, statement: str, database: str = "postgres") -> None:
        leader = await self.leader()
        address = ["-h", leader.machine.host, "-p", leader.postgres_port, "-U", "postgres", "-d", database]
        await run(postgres_programs() / "psql", *address, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement)
