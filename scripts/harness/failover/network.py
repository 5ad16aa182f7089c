"""Machines in network namespaces, and partitions between them. Needs root.

Each network is a bridge, of which this machine has the last address. A partition moves the links of some machines to a
bridge of their own, where they reach only each other.
"""

import os

from harness.servers import Machine, run, succeeds

POSTGRES, REDIS, CLIENTS, SIDE = NETWORKS = "1", "2", "3", "4"  # the third parts of the addresses
MACHINES = {f"db{number}": [POSTGRES] for number in (1, 2, 3)} | {f"r{number}": [REDIS] for number in (1, 2, 3)}
MACHINES |= {"A": [POSTGRES, REDIS, CLIENTS]}
IP = "/bin/ip"
# Several runs do not disturb each other.
PREFIX, SUBNET = f"as{os.getpid()}", f"10.{100 + os.getpid() % 100}"


async def ip(*arguments: str) -> None:
    await run(IP, *arguments)


class Networks:
    def __init__(self) -> None:
        self.namespaces: list[str] = []
        self.links: dict[tuple[str, str], str] = {}  # by machine and network

    async def create(self) -> dict[str, Machine]:
        """Returns the machines by their names. The address of A is the one for clients."""
        for network in NETWORKS:
            await ip("link", "add", f"{PREFIX}-{network}", "type", "bridge")
            await ip("address", "add", f"{SUBNET}.{network}.254/24", "dev", f"{PREFIX}-{network}")
            await ip("link", "set", f"{PREFIX}-{network}", "up")
        return {name: await self.add(name, networks) for name, networks in MACHINES.items()}

    async def add(self, name: str, networks: list[str]) -> Machine:
        namespace, number = f"{PREFIX}-{name}", len(self.namespaces) + 1
        self.namespaces.append(namespace)
        await ip("netns", "add", namespace)
        await ip("-n", namespace, "link", "set", "lo", "up")
        for network in networks:
            link = self.links[name, network] = f"{PREFIX}-{network}{number}"
            address, inner = f"{SUBNET}.{network}.{number}", f"net{network}"
            await ip("link", "add", link, "type", "veth", "peer", "name", inner, "netns", namespace)
            await ip("-n", namespace, "address", "add", f"{address}/24", "dev", inner)
            await ip("-n", namespace, "link", "set", inner, "up")
            await self.move(network, network, name)
            await ip("link", "set", link, "up")
        return Machine(address, (IP, "netns", "exec", namespace))

    async def move(self, network: str, to: str, *names: str) -> None:
        """Moves links of machines: to SIDE, which cuts them off from the others, or back."""
        for name in names:
            await ip("link", "set", self.links[name, network], "master", f"{PREFIX}-{to}")

    async def delete(self) -> None:
        for link in (*self.links.values(), *(f"{PREFIX}-{network}" for network in NETWORKS)):
            await succeeds(ip("link", "del", link))
        for namespace in self.namespaces:
            await succeeds(ip("netns", "del", namespace))
