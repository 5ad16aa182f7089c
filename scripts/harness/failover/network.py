"""Machines in network namespaces, and partitions between them. Needs root.

Each network is a bridge, of which this machine has the last address; its number is the third part of all addresses. A
partition moves the links of some machines to a bridge of their own, where they reach only each other.
"""

import os
import shutil

from harness.servers import CommandError, Machine, run, succeeds

POSTGRES, REDIS, CLIENTS = "1", "2", "3"
PREFIX = f"as{os.getpid()}"  # of everything that is created
SIDE = f"{PREFIX}-side"
IP = shutil.which("ip", path="/usr/sbin:/usr/bin") or "ip"


async def ip(*arguments: str) -> None:
    await run(IP, *arguments)


async def permitted() -> bool:
    """Returns true if this user may create what a network needs."""
    try:
        created = await succeeds(ip("netns", "add", PREFIX)) and await succeeds(ip("link", "add", SIDE, "type", "bridge"))
        await succeeds(ip("netns", "del", PREFIX))
        await succeeds(ip("link", "del", SIDE))
        return created
    except OSError:  # there is no such program
        return False


class Networks:
    def __init__(self) -> None:
        self.namespaces: list[str] = []
        self.bridges: list[str] = []
        self.links: dict[tuple[str, str], str] = {}  # by machine and network

    async def create(self) -> None:
        for network in (POSTGRES, REDIS, CLIENTS):
            await self.add_bridge(f"{PREFIX}-{network}")
            await ip("address", "add", f"10.213.{network}.254/24", "dev", self.bridges[-1])
        await self.add_bridge(SIDE)

    async def add_bridge(self, name: str) -> None:
        self.bridges.append(name)
        await ip("link", "add", name, "type", "bridge")
        await ip("link", "set", name, "up")

    async def add(self, name: str, *networks: str) -> Machine:
        """Creates a machine. Its address is the one in the last network."""
        namespace, number = f"{PREFIX}-{name}", len(self.namespaces) + 1
        self.namespaces.append(namespace)
        await ip("netns", "add", namespace)
        await ip("-n", namespace, "link", "set", "lo", "up")
        for network in networks:
            link = self.links[name, network] = f"{PREFIX}-{network}{number}"
            await ip("link", "add", link, "type", "veth", "peer", "name", f"net{network}", "netns", namespace)
            await ip("link", "set", link, "master", f"{PREFIX}-{network}", "up")
            address = f"10.213.{network}.{number}"
            await ip("-n", namespace, "address", "add", f"{address}/24", "dev", f"net{network}")
            await ip("-n", namespace, "link", "set", f"net{network}", "up")
        return Machine(address, (IP, "netns", "exec", namespace))

    async def separate(self, network: str, *names: str) -> None:
        """Cuts machines off from the others of a network, but not from each other."""
        for name in names:
            await ip("link", "set", self.links[name, network], "master", SIDE)

    async def join(self, network: str, *names: str) -> None:
        """Ends the partition."""
        for name in names:
            await ip("link", "set", self.links[name, network], "master", f"{PREFIX}-{network}")

    async def delete(self) -> None:
        for link in (*self.links.values(), *self.bridges):
            await succeeds(ip("link", "del", link))
        for namespace in self.namespaces:
            await succeeds(ip("netns", "del", namespace))
