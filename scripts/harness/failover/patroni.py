"""Three PostgreSQL servers under Patroni, which keeps its state in Raft, with synchronous replication."""

import asyncio
import json
import os
import signal
import urllib.request
from contextlib import suppress
from pathlib import Path

from harness.servers import (
    Machine, Server, as_postgres, children, free_port, postgres_programs, run, succeeds, until,
)

# The smallest values that Patroni permits, in seconds. A primary that does not respond is replaced after the TTL.
TIMES = {"ttl": 20, "loop_wait": 1, "retry_timeout": 3}


class Patroni(Server):
    """A Patroni, whose API has `port`, and its PostgreSQL. They start and are killed together, as their machine."""

    def __init__(self, folder: Path, name: str, machine: Machine):
        self.raft, self.postgres = (f"{machine.host}:{free_port()}" for _ in range(2))
        home = folder / name
        home.mkdir()
        self.file, self.data = home / "patroni.json", home / "data"
        command = as_postgres(home, "/usr/bin/patroni", self.file)
        super().__init__(home, name, free_port(), command, machine, env={"HOME": str(home), "PATH": os.defpath})

    def configure(self, nodes: list["Patroni"]) -> None:
        api, partners = f"{self.machine.host}:{self.port}", [node.raft for node in nodes if node is not self]
        postgres = {"use_pg_rewind": True, "parameters": {"unix_socket_directories": ""}}
        self.file.write_text(json.dumps({
            "scope": "store", "name": self.name, "restapi": {"listen": api, "connect_address": api},
            "raft": {"data_dir": str(self.folder), "self_addr": self.raft, "partner_addrs": partners},
            "bootstrap": {
                "dcs": TIMES | {"synchronous_mode": True, "postgresql": postgres},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}],
            },
            "postgresql": {
                "listen": self.postgres, "connect_address": self.postgres, "data_dir": str(self.data),
                "bin_dir": str(postgres_programs()), "pg_hba": ["host all,replication all all trust"],
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
            },
        }))

    @property
    def pid(self) -> int:
        """Of PostgreSQL, which alone is frozen. Raises OSError or ValueError if it does not run."""
        pid, data = (self.data / "postmaster.pid").read_text().split()[:2]
        Path(f"/proc/{pid}/cmdline").read_text().index(data)
        return int(pid)

    async def discard(self) -> None:
        if self.process and self.process.returncode is None:
            self.process.kill()
            with suppress(OSError, ValueError):
                for process in (pid := self.pid, *children(pid)):
                    os.kill(process, signal.SIGKILL)
            await self.process.wait()

    async def view(self) -> dict[str, dict]:
        """The members of the cluster by their roles, as this one knows them; empty without a response."""

        def get() -> dict[str, dict]:
            with suppress(OSError, ValueError):
                url = f"http://{self.machine.host}:{self.port}/cluster"
                with urllib.request.urlopen(url, timeout=2) as response:
                    return {member["role"]: member for member in json.load(response)["members"]}
            return {}

        return await asyncio.to_thread(get)


class Cluster:
    """An engine that fails over."""

    def __init__(self, folder: Path, machines: list[Machine]):
        self.nodes = [Patroni(folder, f"db{number}", machine) for number, machine in enumerate(machines, 1)]
        for node in self.nodes:
            node.configure(self.nodes)
        # Of all servers: the client looks for the primary.
        self.url = f"postgres://postgres@{','.join(node.postgres for node in self.nodes)}/postgres"

    async def start(self) -> None:
        for node in self.nodes:
            await node.spawn()

    async def views(self) -> list[dict[str, dict]]:
        return await asyncio.gather(*(node.view() for node in self.nodes))

    async def leader(self) -> Patroni | None:
        """The primary, if more than half of the nodes know it."""
        leaders = [view["leader"]["name"] for view in await self.views() if "leader" in view]
        return next((node for node in self.nodes if 2 * leaders.count(node.name) > len(self.nodes)), None)

    async def is_healthy(self) -> bool:
        """Returns true if all nodes know the same primary, synchronous standby and other standby, on one timeline."""
        views = await self.views()
        if any({*view} != {"leader", "replica", "sync_standby"} for view in views):
            return False
        leaders = {view["leader"]["name"] for view in views}
        states = {(member["state"], member.get("timeline")) for view in views for member in view.values()}
        return len(leaders) == len(states) == 1

    async def switch_over(self) -> None:
        """Returns when a node has accepted the command, or has followed it: on a busy machine, a response can be late."""
        view: dict[str, dict] = {}

        async def is_known() -> bool:
            view.update(await self.nodes[0].view())
            return {"leader", "sync_standby"} <= view.keys()

        await until(is_known)
        leader, candidate = view["leader"]["name"], view["sync_standby"]["name"]
        command = ["/usr/bin/patronictl", "-c", self.nodes[0].file, "switchover", "store", "--force"]
        command += ["--master", leader, "--candidate", candidate]

        async def is_accepted() -> bool:
            if await succeeds(run(*command)):
                return True
            current = (await self.nodes[0].view()).get("leader", {})
            return current.get("name", leader) != leader

        await until(is_accepted)
