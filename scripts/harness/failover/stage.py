"""Two instances over Patroni and Sentinel, on a route to PostgreSQL: a URL with all hosts, HAProxy, or PgBouncer."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from harness.failover.network import CLIENTS, POSTGRES, REDIS, Networks
from harness.failover.patroni import Cluster, as_postgres
from harness.failover.sentinel import Sentinels
from harness.proxies import Proxies
from harness.servers import HERE, Machine, Server, free_port
from harness.service import Instance, KeyCommands
from harness.stages import Stage

URL, HAPROXY, PGBOUNCER = "url", "haproxy", "pgbouncer"
HEALTH_TIMEOUT = 120.0
NAMES = {**dict.fromkeys(("db1", "db2", "db3"), (POSTGRES,)), **dict.fromkeys(("r1", "r2", "r3"), (REDIS,))}

HAPROXY_FILE = """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1d
    timeout server 1d
listen primary
    bind {address}
    option httpchk GET /primary
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
"""
PGBOUNCER_FILE = """
[databases]
store = host={host} port={port} user=postgres
[pgbouncer]
listen_addr = {host}
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 30
server_login_retry = 1
"""


class Intermediary(Server):
    """A program with a port and one configuration file, next to an instance."""

    def __init__(self, folder: Path, name: str, machine: Machine):
        self.port, home = free_port(), folder / name
        home.mkdir()
        self.file = home / "configuration"
        super().__init__(home, name, [], machine)

    def balance(self, cluster: Cluster) -> "Intermediary":
        lines = [HAPROXY_FILE.format(address=f"{self.machine.host}:{self.port}")]
        lines += [
            f"    server {node.name} {node.machine.host}:{node.postgres_port} check port {node.port}\n"
            for node in cluster.nodes
        ]
        self.file.write_text("".join(lines))
        self.command += ["/usr/sbin/haproxy", "-db", "-f", self.file]
        return self

    def pool(self, server: Server) -> "Intermediary":
        self.file.write_text(PGBOUNCER_FILE.format(host=self.machine.host, port=server.port, own_port=self.port))
        self.command += as_postgres(self.folder, ["/usr/sbin/pgbouncer", self.file])
        return self


class FailoverStage(Stage):
    """Instance A has a machine of its own, if there are any, and B runs on this one."""

    def __init__(self, folder: Path, program: Path, route: str, machines: dict[str, Machine]):
        self.route, self.stalls = route, Proxies().stalls
        self.postgres = Cluster(folder, [machines.get(name, HERE) for name in ("db1", "db2", "db3")])
        self.redis = Sentinels(folder, [machines.get(name, HERE) for name in ("r1", "r2", "r3")])
        keys = {"keys.backend": "redis", "keys.redis.url": self.redis.url, "keys.redis.wait_replicas": 1}
        self.commands = KeyCommands(program, folder, keys)
        self.instances, self.intermediaries = {}, []
        for name, machine in {"A": machines.get("A", HERE), "B": HERE}.items():
            self.instances[name] = Instance(folder, name, program, self.storage(folder, name, machine) | keys, machine)
        engines = (*self.postgres.nodes, *self.redis.nodes, *self.redis.sentinels)
        self.servers = (*self.intermediaries, *engines)

    def storage(self, folder: Path, name: str, machine: Machine) -> dict[str, object]:
        settings = {"storage.backend": "postgres", "storage.postgres.url": self.postgres.url}
        if self.route == URL:
            return settings
        server = Intermediary(folder, f"{HAPROXY}-{name}", machine).balance(self.postgres)
        self.intermediaries.append(server)
        if self.route == PGBOUNCER:
            server = Intermediary(folder, f"{PGBOUNCER}-{name}", machine).pool(server)
            self.intermediaries.append(server)
            settings |= {"storage.postgres.transaction_pooling": True, "storage.postgres.migrate_url": self.postgres.url}
        return settings | {"storage.postgres.url": f"postgres://postgres@{machine.host}:{server.port}/store"}

    async def start_servers(self) -> None:
        await self.postgres.start()
        await self.redis.start()
        await until(self.postgres.is_healthy)
        await until(self.redis.is_healthy)
        await self.postgres.sql("CREATE DATABASE store")
        for server in self.intermediaries:
            await server.start()


async def create_machines(networks: Networks) -> dict[str, Machine]:
    await networks.create()
    machines = {name: await networks.add(name, *of) for name, of in NAMES.items()}
    return machines | {"A": await networks.add("A", POSTGRES, REDIS, CLIENTS)}


async def until(condition: Callable[[], Awaitable[object]], timeout: float = HEALTH_TIMEOUT) -> None:
    """Waits for a condition. A question without an answer counts as false."""
    async with asyncio.timeout(timeout):
        while True:
            try:
                async with asyncio.timeout(3):
                    if await condition():
                        return
            except TimeoutError:
                pass
            await asyncio.sleep(0.1)
