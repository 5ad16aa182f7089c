"""Two instances over Patroni and Sentinel. The routes to PostgreSQL are a URL with all hosts, HAProxy, and PgBouncer in
front of it; `sentinel` and `keys` have the URL, and `keys` has the API keys in PostgreSQL."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from harness.failover.patroni import Cluster, as_postgres
from harness.failover.sentinel import Sentinels
from harness.proxies import Proxies
from harness.servers import HERE, Machine, Server, free_port, run
from harness.service import Instance, KeyCommands, environment
from harness.stages import Stage

URL, HAPROXY, PGBOUNCER, SENTINEL, KEYS = ROUTES = "url", "haproxy", "pgbouncer", "sentinel", "keys"

# HAProxy asks Patroni which server is the primary.
HAPROXY_FILE = """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1d
    timeout server 1d
listen primary
    bind {host}:{port}
    option httpchk GET /primary
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""
PGBOUNCER_FILE = """
[databases]
postgres = host={host} port={onward} user=postgres
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_login_retry = 1
"""


class Intermediary(Server):
    """A program with a port and one configuration file, next to an instance."""

    def __init__(self, folder: Path, name: str, machine: Machine, program: list, template: str, **values: object):
        self.port, home = free_port(), folder / name
        home.mkdir()
        file = home / "configuration"
        file.write_text(template.format(host=machine.host, port=self.port, **values))
        super().__init__(home, name, as_postgres(home, *program, file), machine)


class FailoverStage(Stage):
    """Instance A has a machine of its own, if there are any, and B runs on this one."""

    def __init__(self, folder: Path, program: Path, route: str, machines: dict[str, Machine]):
        folder.mkdir()
        self.route, self.folder, self.stalls = route, folder, Proxies().stalls
        self.postgres = Cluster(folder, [machines.get(f"db{number}", HERE) for number in (1, 2, 3)])
        self.redis = Sentinels(folder, [machines.get(f"r{number}", HERE) for number in (1, 2, 3)])
        keys = {"keys.backend": "redis", "keys.redis.url": self.redis.url, "keys.redis.wait_replicas": 1}
        self.commands, self.instances, self.intermediaries = KeyCommands(program, folder, keys), {}, []
        for name, machine in {"A": machines.get("A", HERE), "B": HERE}.items():
            settings = self.storage(name, machine) | ({} if route == KEYS else keys)
            self.instances[name] = Instance(folder, name, program, settings, machine)
        if route == KEYS:
            self.commands.variables = environment(settings)
        engines = (*self.postgres.nodes, *self.redis.nodes, *self.redis.sentinels)
        self.servers = (*self.intermediaries, *engines)

    def storage(self, name: str, machine: Machine) -> dict[str, object]:
        settings = {"storage.backend": "postgres", "storage.postgres.url": self.postgres.url}
        if self.route not in (HAPROXY, PGBOUNCER):
            return settings
        servers = "\n".join(
            f"    server {node.name} {node.postgres} check port {node.port}" for node in self.postgres.nodes
        )
        program = ["/usr/sbin/haproxy", "-db", "-f"]
        last = Intermediary(self.folder, f"haproxy-{name}", machine, program, HAPROXY_FILE, servers=servers)
        self.intermediaries.append(last)
        if self.route == PGBOUNCER:
            program, port = ["/usr/sbin/pgbouncer"], last.port
            last = Intermediary(self.folder, f"pgbouncer-{name}", machine, program, PGBOUNCER_FILE, onward=port)
            self.intermediaries.append(last)
            settings["storage.postgres.transaction_pooling"] = True
            settings["storage.postgres.migrate_url"] = self.postgres.url
        return settings | {"storage.postgres.url": f"postgres://postgres@{machine.host}:{last.port}/postgres"}

    async def start_servers(self) -> None:
        for engine in (self.postgres, self.redis):
            await engine.start()
            await until(engine.is_healthy)
        for server in self.intermediaries:
            await server.start()
        if self.route == KEYS:
            await run(self.commands.program, "migrate", env=self.commands.variables)


async def until(condition: Callable[[], Awaitable[object]], timeout: float = 120.0) -> None:
    """Waits for a condition. A question without an answer counts as false."""
    async with asyncio.timeout(timeout):
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(3):
                    if await condition():
                        return
            await asyncio.sleep(0.1)
