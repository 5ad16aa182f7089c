"""Two Redis servers, one of which replicates the other, and three Sentinels that appoint a master."""

import asyncio
from contextlib import suppress
from pathlib import Path

from harness.failover.network import REDIS
from harness.servers import CommandError, Machine, Redis, Server, free_port

SERVICE = "shop"
# Milliseconds after which a master that does not respond is replaced.
DOWN_AFTER = 2000
FAILOVER_TIMEOUT = 6000


class ReplicatedRedis(Redis):
    """A durable Redis whose role is in its configuration file, which Sentinel has rewritten."""

    network = REDIS

    def __init__(self, folder: Path, name: str, machine: Machine, master: "ReplicatedRedis | None"):
        home = folder / name
        home.mkdir()
        self.port = free_port()
        lines = ["appendonly yes", "appendfsync always", 'save ""', "protected-mode no", f"dir {home}"]
        lines += [f"port {self.port}", f"bind {machine.host}"]
        lines += [f"replicaof {master.machine.host} {master.port}"] if master else []
        (home / "redis.conf").write_text("\n".join(lines) + "\n")
        Server.__init__(self, home, name, ["/usr/bin/redis-server", home / "redis.conf"], machine)

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


class Sentinel(ReplicatedRedis):
    def __init__(self, folder: Path, name: str, machine: Machine, master: ReplicatedRedis):
        super().__init__(folder, name, machine, None)
        lines = [f"port {self.port}", f"bind {machine.host}", "protected-mode no", f"dir {self.folder}"]
        lines += [f"sentinel monitor {SERVICE} {master.machine.host} {master.port} 2"]
        lines += [f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER}"]
        lines += [f"sentinel failover-timeout {SERVICE} {FAILOVER_TIMEOUT}"]
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")
        self.command.append("--sentinel")

    async def master(self) -> list[str]:
        """The address and the port of the master, as this Sentinel knows it."""
        with suppress(CommandError):
            return (await self.cli("SENTINEL", "get-master-addr-by-name", SERVICE)).split()
        return []


class Sentinels:
    """Like `Cluster`. Each of the first two machines has a Redis and a Sentinel, and the third one has a Sentinel."""

    name, network = "redis", REDIS

    def __init__(self, folder: Path, machines: list[Machine]):
        master = ReplicatedRedis(folder, "r1", machines[0], None)
        self.nodes = [master, ReplicatedRedis(folder, "r2", machines[1], master)]
        self.sentinels = [
            Sentinel(folder, f"s{number}", machine, master) for number, machine in enumerate(machines, 1)
        ]

    @property
    def url(self) -> str:
        hosts = ",".join(f"{each.machine.host}:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    async def start(self) -> None:
        for server in (*self.nodes, *self.sentinels):
            await server.start()

    async def leader(self) -> ReplicatedRedis | None:
        """The master, if more than half of the Sentinels name it."""
        named = await asyncio.gather(*(sentinel.master() for sentinel in self.sentinels))
        for node in self.nodes:
            if 2 * named.count([node.machine.host, str(node.port)]) > len(self.sentinels):
                return node
        return None

    async def is_healthy(self) -> bool:
        """Returns true if the master has a replica that follows, and all Sentinels can agree."""
        if not (leader := await self.leader()):
            return False
        try:
            states = [await sentinel.cli("SENTINEL", "ckquorum", SERVICE) for sentinel in self.sentinels]
            named = [await sentinel.master() for sentinel in self.sentinels]
            information = await leader.cli("INFO", "replication")
        except CommandError:
            return False
        agreed = all(state.startswith("OK 3 usable") for state in states) and named.count(named[0]) == 3
        return agreed and "role:master" in information and "state=online" in information

    async def switch_over(self) -> None:
        await self.sentinels[-1].cli("SENTINEL", "failover", SERVICE)
