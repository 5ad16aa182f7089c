"""Two Redis servers, one of which replicates the other, and three Sentinels that appoint a master."""

import asyncio
from contextlib import suppress
from pathlib import Path

from harness.servers import CommandError, Machine, Redis, Server, free_port

DOWN_AFTER = 2000  # milliseconds after which a master that does not respond is replaced


class Replicated(Redis):
    """A durable Redis, or a Sentinel. Its role is in its configuration file, which Sentinel rewrites."""

    def __init__(self, folder: Path, name: str, machine: Machine, *lines: str):
        self.port, home = free_port(), folder / name
        home.mkdir()
        lines = (f"port {self.port}", f"bind {machine.host}", "protected-mode no", f"dir {home}", *lines)
        (home / "redis.conf").write_text("\n".join(lines) + "\n")
        Server.__init__(self, home, name, ["/usr/bin/redis-server", home / "redis.conf"], machine)

    async def ask(self, *command: str) -> str:
        """The response to a command; empty without one in time."""
        with suppress(CommandError, TimeoutError):
            async with asyncio.timeout(1):
                return await self.cli(*command)
        return ""


class Sentinels:
    """An engine that fails over. Two machines have a Redis and a Sentinel, the third one has a Sentinel."""

    def __init__(self, folder: Path, machines: list[Machine]):
        durable = 'save ""', "appendonly yes", "appendfsync always"
        master = Replicated(folder, "r1", machines[0], *durable)
        address = f"{master.machine.host} {master.port}"
        self.nodes = [master, Replicated(folder, "r2", machines[1], *durable, f"replicaof {address}")]
        lines = f"sentinel monitor shop {address} 2", f"sentinel down-after-milliseconds shop {DOWN_AFTER}"
        self.sentinels = []
        for number, machine in enumerate(machines, 1):
            sentinel = Replicated(folder, f"s{number}", machine, *lines, "sentinel failover-timeout shop 6000")
            sentinel.command.append("--sentinel")
            self.sentinels.append(sentinel)
        hosts = ",".join(f"{each.machine.host}:{each.port}" for each in self.sentinels)
        self.url = f"redis+sentinel://{hosts}/shop"

    async def start(self) -> None:
        for server in (*self.nodes, *self.sentinels):
            await server.start()

    async def ask(self, command: str) -> list[str]:
        return await asyncio.gather(*(sentinel.ask("SENTINEL", command, "shop") for sentinel in self.sentinels))

    async def leader(self) -> Replicated | None:
        """The master, if more than half of the Sentinels name it."""
        named = [response.split() for response in await self.ask("get-master-addr-by-name")]
        votes = {node: named.count([node.machine.host, str(node.port)]) for node in self.nodes}
        return next((node for node in self.nodes if 2 * votes[node] > len(self.sentinels)), None)

    async def is_healthy(self) -> bool:
        """Returns true if all Sentinels can agree, and the master that they name has a replica that follows."""
        leader, quorum = await self.leader(), await self.ask("ckquorum")
        state = await leader.ask("INFO", "replication") if leader else ""
        agree = all(response.startswith("OK 3 usable") for response in quorum)
        return agree and "role:master" in state and "state=online" in state

    async def switch_over(self) -> None:
        await self.sentinels[-1].cli("SENTINEL", "failover", "shop")
