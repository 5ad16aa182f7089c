"""Machines in network namespaces, and partitions between them. Needs root.

Each network is a bridge, of which this machine has the last address; its number is the third part of all addresses. A
partition moves the links of some machines to a bridge of their own, where they reach only each other.
"""

import os
import shutil

from harness.servers import Machine, run, succeeds

POSTGRES, REDIS, CLIENTS = "1", "2", "3"
PREFIX = f"as{os.getpid()}"  # of everything that is created
IP = shutil.which("ip", path="/usr/sbin:/usr/bin") or "ip"


async def ip(*arguments: str) -> None:
    await run(IP, *arguments)


class Networks:
    def __init__(self) -> None:
        self.namespaces: list[str] = []
        self.links: dict[tuple[str, str], str] = {}  # by machine and network

    async def create(self) -> dict[str, Machine]:
        """Returns machines by their names: three of each engine, and A, which has an address for clients."""
        for network in (POSTGRES, REDIS, CLIENTS, "side"):
            await ip("link", "add", f"{PREFIX}-{network}", "type", "bridge")
            await ip("link", "set", f"{PREFIX}-{network}", "up")
            if network != "side":
                await ip("address", "add", f"10.213.{network}.254/24", "dev", f"{PREFIX}-{network}")
        networks = {f"db{number}": [POSTGRES] for number in (1, 2, 3)} | {f"r{number}": [REDIS] for number in (1, 2, 3)}
        networks["A"] = [POSTGRES, REDIS, CLIENTS]
        return {name: await self.add(name, of) for name, of in networks.items()}

    async def add(self, name: str, networks: list[str]) -> Machine:
        """Creates a machine. Its address is the one in the last network."""
        namespace, number = f"{PREFIX}-{name}", len(self.namespaces) + 1
        self.namespaces.append(namespace)
        await ip("netns", "add", namespace)
        await ip("-n", namespace, "link", "set", "lo", "up")
        for network in networks:
            link = self.links[name, network] = f"{PREFIX}-{network}{number}"
            address, inner = f"10.213.{network}.{number}", f"net{network}"
            await ip("link", "add", link, "type", "veth", "peer", "name", inner, "netns", namespace)
            await ip("link", "set", link, "master", f"{PREFIX}-{network}", "up")
            await ip("-n", namespace, "address", "add", f"{address}/24", "dev", inner)
            await ip("-n", namespace, "link", "set", inner, "up")
        return Machine(address, (IP, "netns", "exec", namespace))

    async def separate(self, network: str, *names: str) -> None:
        """Cuts machines off from the others of a network, but not from each other."""
        for name in names:
            await ip("link", "set", self.links[name, network], "master", f"{PREFIX}-side")

    async def join(self, network: str, *names: str) -> None:
        for name in names:
            await ip("link", "set", self.links[name, network], "master", f"{PREFIX}-{network}")

    async def delete(self) -> None:
        for link in (*self.links.values(), *(f"{PREFIX}-{network}" for network in (POSTGRES, REDIS, CLIENTS, "side"))):
            await succeeds(ip("link", "del", link))
        for namespace in self.namespaces:
            await succeeds(ip("netns", "del", namespace))
