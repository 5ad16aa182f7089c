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

    @property
    def pid(self) -> int:
        """Of PostgreSQL: 0 if there is none."""
        with suppress(OSError, ValueError, IndexError):
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
            if str(self.data) in Path(f"/proc/{pid}/cmdline").read_text():
                return pid
        return 0

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
        postgres = self.pid
        for process in filter(None, (self.process.pid, postgres, *children(postgres))):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await self.process.wait()

    async def discard(self) -> None:
        if self.process and self.process.returncode is None:
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

    async def members(self, without: Patroni | None = None) -> list[dict]:
        for node in self.nodes:
            if node is not without:
                with suppress(OSError, ValueError, KeyError):
                    return await node.members()
        return []

    async def leader(self, without: Patroni | None = None) -> Patroni | None:
        """The node that leads, as the others than `without` know."""
        for member in await self.members(without):
            if member["role"] == "leader" and member["state"] == "running":
                return next(node for node in self.nodes if node.name == member["name"])
        return None

    async def is_healthy(self) -> bool:
        """Returns true if there are a primary, a synchronous standby, and another standby that follows."""
        members = await self.members()
        roles = sorted(member["role"] for member in members if member["state"] in ("running", "streaming"))
        return roles == ["leader", "replica", "sync_standby"] and len({member["timeline"] for member in members}) == 1

    async def switch_over(self) -> None:
        standby = next(member["name"] for member in await self.members() if member["role"] == "sync_standby")
        leader = (await self.leader()).name
        command = ["/usr/bin/patronictl", "-c", self.nodes[0].file, "switchover", "store", "--force"]
        await run(*command, "--master", leader, "--candidate", standby)

    async def sql(self, statement: str, database: str = "postgres") -> None:
        leader = await self.leader()
        address = ["-h", leader.machine.host, "-p", leader.postgres_port, "-U", "postgres", "-d", database]
        await run(postgres_programs() / "psql", *address, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement)
