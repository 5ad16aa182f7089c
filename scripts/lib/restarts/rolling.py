"""Rolling restarts of two instances behind HAProxy, with PostgreSQL and Redis."""

import asyncio
import contextlib
import signal
from pathlib import Path

from restarts.clients import running
from restarts.load import Load
from restarts.proxy_checks import SETTINGS, check_proxy
from restarts.proxy_programs import HAProxy, create_certificate
from restarts.results import Results, compare_with_storage
from soak.instances import Instance, KeyCommands
from soak.servers import START_TIMEOUT, Postgres, Redis

# Seconds from the check that finds a new instance ready until the next one is stopped.
PAUSE = 0.5


async def restart_behind_haproxy(folder: Path, program: Path, restarts: int, connections: int, number: signal.Signals):
    """Returns the results of rolling restarts under load."""
    postgres, redis, wrong = Postgres(folder), Redis(folder), []
    instances = [Instance(folder, name, program, postgres, redis) for name in ("A", "B")]
    for instance in instances:
        instance.options["env"] |= SETTINGS | {"ANIMAL_STORE_HTTP__TRUSTED_PROXIES": "127.0.0.1"}
    certificate = await create_certificate(folder)
    ports = [(instance.port, instance.management_port) for instance in instances]
    haproxy = HAProxy(folder, certificate, *ports)
    try:
        await postgres.create()
        await redis.start()
        token = await KeyCommands(program, folder, redis).create("restarts")
        for server in (*instances, haproxy):
            await server.start()
        load = Load(haproxy.connect, token)
        async with running(load, connections):
            await asyncio.sleep(1)
            for instance in instances * restarts:
                server, offset = instance.name.lower(), haproxy.log.stat().st_size
                if code := await instance.stop(number):
                    wrong.append(f"exit code {code} of {instance.name}")
                await haproxy.notices(server, "DOWN", offset)
                offset = haproxy.log.stat().st_size
                await instance.start()
                await haproxy.notices(server, "UP", offset)
                await asyncio.sleep(PAUSE)
        comparison, stored = await compare_with_storage(load)
        wrong += await check_proxy(haproxy, token, [each.log for each in instances], lambda: locked(postgres))
        done = f"{restarts}, of both instances"
        return Results("Two instances behind HAProxy", done, load, comparison, stored, wrong)
    finally:
        for server in (haproxy, *instances, redis, postgres):
            await server.discard()


@contextlib.asynccontextmanager
async def locked(postgres: Postgres):
    """Holds the lock of the table, so that creates get 503."""
    lock = asyncio.create_task(postgres.sql("BEGIN", "LOCK TABLE pets IN EXCLUSIVE MODE", "SELECT pg_sleep(3)"))
    held = "SELECT count(*) FROM pg_locks WHERE relation = 'pets'::regclass AND mode = 'ExclusiveLock' AND granted"
    async with asyncio.timeout(START_TIMEOUT):
        while await postgres.sql(held) != "1\n":
            await asyncio.sleep(0.05)
    try:
        yield
    finally:
        await lock
