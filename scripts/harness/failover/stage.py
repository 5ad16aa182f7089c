"""Two instances over Patroni and Sentinel. The routes to PostgreSQL are a URL with all hosts, HAProxy, and PgBouncer in
front of it; `sentinel` and `keys` have the URL, and `keys` has the API keys in PostgreSQL."""

from pathlib import Path

from harness.failover.patroni import Cluster
from harness.failover.sentinel import Sentinels
from harness.proxies import Proxies
from harness.restarts.proxies import PgBouncer, configuration
from harness.servers import HERE, Machine, Server, as_postgres, free_port, run, succeeds, until
from harness.service import Instance, KeyCommands, environment
from harness.stages import Stage

FAIL_OVER_TIMEOUT = 120.0
URL, HAPROXY, PGBOUNCER, SENTINEL, ALONE = ROUTES = "url", "haproxy", "pgbouncer", "sentinel", "keys"


class FailoverStage(Stage):
    """Instance A has a machine of its own, if there are any, and B runs on this one."""

    def __init__(self, folder: Path, program: Path, route: str, machines: dict[str, Machine]):
        folder.mkdir()
        self.route, self.folder, self.stalls = route, folder, Proxies().stalls
        self.postgres = Cluster(folder, [machines.get(f"db{number}", HERE) for number in (1, 2, 3)])
        self.redis = Sentinels(folder, [machines.get(f"r{number}", HERE) for number in (1, 2, 3)])
        keys = {"keys.backend": "redis", "keys.redis.url": self.redis.url, "keys.redis.wait_replicas": 1}
        self.commands, self.instances = KeyCommands(program, folder, keys), {}
        self.intermediaries: list[Server] = []
        self.poolers: list[PgBouncer] = []
        for name, machine in {"A": machines.get("A", HERE), "B": HERE}.items():
            settings = self.storage(name, machine) | ({} if route == ALONE else keys)
            self.instances[name] = Instance(folder, name, program, settings, machine)
        if route == ALONE:
            self.commands.variables = environment(settings)
        engines = (*self.postgres.nodes, *self.redis.nodes, *self.redis.sentinels)
        self.servers = (*self.intermediaries, *self.poolers, *engines)

    def storage(self, name: str, machine: Machine) -> dict[str, object]:
        settings = {"storage.backend": "postgres", "storage.postgres.url": self.postgres.url}
        if self.route not in (HAPROXY, PGBOUNCER):
            return settings
        host, port = machine.host, free_port()
        values = {f"{node.name}.example:5432": f"{node.postgres} port {node.port}" for node in self.postgres.nodes}
        values["127.0.0.1:5432"] = f"{host}:{port}"
        self.add(name, machine, port, "postgresql.cfg", values, "/usr/sbin/haproxy", "-db", "-f")
        if self.route == PGBOUNCER:
            database = f"host={host} port={port} dbname=postgres"
            self.poolers.append(PgBouncer(self.folder, f"{name}-pgbouncer", database, machine))
            port = self.poolers[-1].port
            settings["storage.postgres.transaction_pooling"] = "true"
            settings["storage.postgres.migrate_url"] = self.postgres.url
        name = "store" if self.poolers else "postgres"
        return settings | {"storage.postgres.url": f"postgres://postgres@{host}:{port}/{name}"}

    async def refuse(self, category: int) -> None:
        """Lets the table refuse pets of a category, once an instance has created it."""
        database = f"{self.postgres.url}?target_session_attrs=read-write"
        command = "psql", database, "-qX", "-c", f"ALTER TABLE pets ADD CHECK (category_id <> {category})"
        await until(lambda: succeeds(run(*command)), FAIL_OVER_TIMEOUT)

    def add(self, name: str, machine: Machine, port: int, file: str, values: dict[str, object], *program: str) -> None:
        """Adds a program next to an instance, with a file of deploy/proxies."""
        home = self.folder / f"{name}-{file}"
        home.mkdir()
        (home / file).write_text(configuration(file, values))
        self.intermediaries.append(Server(home, file, port, as_postgres(home, *program, home / file), machine))

    async def start_servers(self) -> None:
        for engine in (self.postgres, self.redis):
            await engine.start()
            await until(engine.is_healthy, FAIL_OVER_TIMEOUT)
        for server in (*self.intermediaries, *self.poolers):
            await server.start()
        if self.route == ALONE:
            await self.commands.migrate()
