"""The scenarios: restarts of one process on a socket that outlives it, and of two instances behind HAProxy."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM, Signals

from harness import creators, readers
from harness.client import Client, Load, clients
from harness.ledger import Comparison, compare
from harness.servers import (
    START_TIMEOUT, Instance, KeyCommands, Postgres, Redis, Server, create_certificate, lock_file, shared_storage,
)
from restarts.proxies import HOST, HAProxy, ProxyProgram
from restarts.proxy_checks import SETTINGS, check_proxy
from restarts.service_manager import ActivatedService

# Seconds between two events.
INTERVAL = 0.5
# Seconds after which a client does not use an idle connection again: less than the second after which the service
# closes idle connections in a shutdown.
MAX_IDLE = 0.5


@dataclass
class Plan:
    program: Path
    restarts: int
    connections: int
    signal: Signals


@dataclass
class Results:
    title: str
    restarts: str  # number and kind
    load: Load
    comparison: Comparison
    stored: int  # pets on all pages
    wrong: list[str] = field(default_factory=list)  # such as exit codes

    def problems(self) -> list[str]:
        return self.load.journal.problems() + self.comparison.problems() + self.wrong


def new_load(server: Server, commands: KeyCommands, token: str) -> Load:
    load = Load({server.name: server}, commands, [token])
    load.max_idle = MAX_IDLE
    return load


def running(load: Load, connections: int):
    """Runs clients: of eight, four create pets without an Idempotency-Key, three with one, and one lists them."""
    eighth = max(1, connections // 8)
    creating = {creators.create_without_key: max(1, connections - 4 * eighth), creators.create_with_key: 3 * eighth}
    return clients(load, creating | {readers.list_pets: eighth})


async def compare_with_storage(load: Load) -> tuple[Comparison, int]:
    """Reads all pages. Returns the comparison and the number of pets."""
    load.journal.settle()
    client = Client(load, "end")
    async with asyncio.timeout(START_TIMEOUT):
        rows = await readers.read_all(client)
    client.close()
    return compare(load.ledger, rows), len(rows)


async def restart_on_a_socket(folder: Path, plan: Plan, kind: type[ProxyProgram] | None = None) -> Results:
    """Restarts one process, and reloads it after each restart. Checks the proxy, if there is one before the process."""
    service = ActivatedService(folder, plan.program, SETTINGS if kind else {})
    proxy = kind(folder, await create_certificate(folder, f"DNS:{HOST}"), service) if kind else None
    commands, wrong = KeyCommands(plan.program, folder), []
    try:
        token = await commands.create("restarts")
        await service.start()
        if proxy:
            await proxy.start()
        load = new_load(proxy or service, commands, token)
        async with running(load, plan.connections):
            await asyncio.sleep(INTERVAL)
            for _ in range(plan.restarts):
                if code := await service.stop(plan.signal):
                    wrong.append(f"exit code {code}")
                await service.start()
                await asyncio.sleep(INTERVAL)
                await service.reload()
                await asyncio.sleep(INTERVAL)
        comparison, stored = await compare_with_storage(load)
        if proxy:
            wrong += await check_proxy(proxy, token, [service.log], lambda seconds: lock_file(folder / "animal-store.db", seconds))
        if code := await service.stop(SIGTERM):
            wrong.append(f"exit code {code} of the last stop")
        title = f"Behind {kind.title}" if kind else "Socket activation"
        done = f"{plan.restarts}, and {plan.restarts} reloads"
        return Results(title, done, load, comparison, stored, wrong)
    finally:
        for server in filter(None, (proxy, service)):
            await server.discard()


async def restart_behind_haproxy(folder: Path, plan: Plan) -> Results:
    """Restarts two instances in turn, with PostgreSQL and Redis."""
    postgres, redis, wrong = Postgres(folder), Redis(folder), []
    settings = shared_storage(postgres.url(), redis.port)
    instances = [Instance(folder, name, plan.program, settings | SETTINGS) for name in "AB"]
    haproxy = HAProxy(folder, await create_certificate(folder, f"DNS:{HOST}"), *instances)
    try:
        await postgres.create()
        await redis.start()
        commands = KeyCommands(plan.program, folder, settings)
        token = await commands.create("restarts")
        for server in (*instances, haproxy):
            await server.start()
        load = new_load(haproxy, commands, token)
        async with running(load, plan.connections):
            await asyncio.sleep(1)
            for instance in instances * plan.restarts:
                server, offset = instance.name.lower(), haproxy.log.stat().st_size
                if code := await instance.stop(plan.signal):
                    wrong.append(f"exit code {code} of {instance.name}")
                await haproxy.notices(server, "DOWN", offset)
                offset = haproxy.log.stat().st_size
                await instance.start()
                await haproxy.notices(server, "UP", offset)
                await asyncio.sleep(INTERVAL)
        comparison, stored = await compare_with_storage(load)
        logs = [each.log for each in instances]
        wrong += await check_proxy(haproxy, token, logs, lambda seconds: postgres.lock(seconds, "EXCLUSIVE"))
        done = f"{plan.restarts}, of both instances"
        return Results("Two instances behind HAProxy", done, load, comparison, stored, wrong)
    finally:
        for server in (haproxy, *instances, redis, postgres):
            await server.discard()
