"""Two Redis servers, one of which replicates the other, and three Sentinels that appoint a master."""

import asyncio
from contextlib import suppress
from pathlib import Path

from harness.servers import CommandError, Machine, Redis

DOWN_AFTER = 2000  # milliseconds after which a master that does not respond is replaced


async def ask(server: Redis, *command: str) -> str:
    """The response to a command; empty without one in time."""
    with suppress(CommandError, TimeoutError):
        async with asyncio.timeout(1):
            return await server.cli(*command)
    return ""


class Sentinels:
    """An engine that fails over. Two machines have a Redis and a Sentinel, the third one has a Sentinel."""

    def __init__(self, folder: Path, machines: list[Machine]):
        master = Redis(folder, "r1", machines[0])
        address = f"{master.machine.host} {master.port}"
        self.nodes = [master, Redis(folder, "r2", machines[1], (*Redis.DURABLE, f"replicaof {address}"))]
        options = f"monitor shop {address} 2", f"down-after-milliseconds shop {DOWN_AFTER}"
        lines = [f"sentinel {option}" for option in (*options, "failover-timeout shop 6000")]
        self.sentinels = [Redis(folder, f"s{number}", machine, lines) for number, machine in enumerate(machines, 1)]
        for sentinel in self.sentinels:
            sentinel.command.append("--sentinel")
        hosts = ",".join(f"{each.machine.host}:{each.port}" for each in self.sentinels)
        self.url = f"redis+sentinel://{hosts}/shop"

    async def start(self) -> None:
        for server in (*self.nodes, *self.sentinels):
            await server.start()

    async def ask(self, command: str) -> list[str]:
        return await asyncio.gather(*(ask(sentinel, "SENTINEL", command, "shop") for sentinel in self.sentinels))

    async def leader(self) -> Redis | None:
        """The master, if more than half of the Sentinels name it."""
        named = [response.split() for response in await self.ask("get-master-addr-by-name")]
        votes = {node: named.count([node.machine.host, str(node.port)]) for node in self.nodes}
        return next((node for node in self.nodes if 2 * votes[node] > len(self.sentinels)), None)

    async def is_healthy(self) -> bool:
        """Returns true if all Sentinels can agree, and the master that they name has a replica that follows."""
        leader, quorum = await self.leader(), await self.ask("ckquorum")
        state = await ask(leader, "INFO", "replication") if leader else ""
        agree = all(response.startswith("OK 3 usable") for response in quorum)
        return agree and "role:master" in state and "state=online" in state

    async def switch_over(self) -> None:
        await self.sentinels[-1].cli("SENTINEL", "failover", "shop")
