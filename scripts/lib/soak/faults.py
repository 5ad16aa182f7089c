"""The faults: what each one does, which instances it affects, and what it may take from requests."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from soak.instances import Instance
from soak.proxies import Proxy
from soak.servers import Postgres, Redis, Server

NOTHING: frozenset[str] = frozenset()
CREATES = frozenset({"creates"})
STORAGE = frozenset({"reads", "creates"})
KEYS = frozenset({"keys"})


@dataclass
class Target:
    """What a fault acts upon. `instances` are those that it affects."""

    postgres: Postgres
    redis: Redis
    instances: list[Instance]
    seconds: float
    delay: float  # of each chunk in a slow connection
    failures: list[str]  # of the servers under test, in words

    @property
    def storage(self) -> list[Proxy]:
        return [instance.storage for instance in self.instances]

    @property
    def keys(self) -> list[Proxy]:
        return [instance.keys for instance in self.instances]


@dataclass(frozen=True)
class Fault:
    kind: str
    # Instances: `B` alone, `one` of them, `some` of them, or `all`. Processes of A never end, so that a leak shows.
    scope: str
    impairs: frozenset[str]
    run: Callable[[Target], Awaitable[None]]
    stop: str | None = None
    early: bool = False  # among the first of a run, so that short runs have the hardest ones


async def kill_instance(target: Target) -> None:
    (instance,) = target.instances
    await instance.stop(signal.SIGKILL)
    await asyncio.sleep(target.seconds)
    await instance.start()


def stop_instance(number: signal.Signals) -> Callable[[Target], Awaitable[None]]:
    async def stop(target: Target) -> None:
        (instance,) = target.instances
        try:
            code = await instance.stop(number)
        except TimeoutError:
            target.failures.append(f"{number.name}: the instance did not end")
            code = await instance.stop(signal.SIGKILL)
        if code != 0:
            target.failures.append(f"{number.name}: the instance ended with exit code {code}")
        await instance.start()

    return stop


async def freeze_instance(target: Target) -> None:
    await freeze(target.instances[0], target.seconds)


async def freeze(server: Server, seconds: float) -> None:
    server.freeze()
    try:
        await asyncio.sleep(seconds)
    finally:
        server.thaw()


def restart_postgres(number: signal.Signals, at_once: bool = False) -> Callable[[Target], Awaitable[None]]:
    async def restart(target: Target) -> None:
        await target.postgres.stop(number)
        await asyncio.sleep(0 if at_once else target.seconds)
        await target.postgres.start()

    return restart


async def terminate_backends(target: Target) -> None:
    sessions = "pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    await target.postgres.sql(f"SELECT pg_terminate_backend(pid) FROM {sessions}")


async def lock_pets(target: Target) -> None:
    lock = "BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE"
    await target.postgres.sql(lock, f"SELECT pg_sleep({target.seconds})", "COMMIT")


async def make_read_only(target: Target) -> None:
    reload = "SELECT pg_reload_conf()"
    await target.postgres.sql("ALTER SYSTEM SET default_transaction_read_only = on", reload)
    await asyncio.sleep(target.seconds)
    await target.postgres.sql("ALTER SYSTEM RESET default_transaction_read_only", reload)


async def restart_redis(target: Target) -> None:
    await target.redis.stop(signal.SIGKILL)
    await asyncio.sleep(target.seconds)
    await target.redis.start()


async def kill_redis_clients(target: Target) -> None:
    await target.redis.cli("CLIENT", "KILL", "TYPE", "normal")


def disturb(service: str, command: str, undo: str) -> Callable[[Target], Awaitable[None]]:
    """Sends a command to the proxies before a service, and another one at the end."""

    async def run(target: Target) -> None:
        proxies: list[Proxy] = getattr(target, service)
        for proxy in proxies:
            await proxy.send(*command.format(target.delay).split())
        await asyncio.sleep(target.seconds)
        for proxy in proxies:
            await proxy.send(*undo.split())

    return run


def refuse(service: str) -> Callable[[Target], Awaitable[None]]:
    return disturb(service, "cut", "accept")


def hold(service: str) -> Callable[[Target], Awaitable[None]]:
    return disturb(service, "hold", "release")


def slow_down(service: str) -> Callable[[Target], Awaitable[None]]:
    return disturb(service, "delay {}", "delay 0")


FAULTS = (
    Fault("instance: SIGKILL, restart", "B", NOTHING, kill_instance, "kill", early=True),
    Fault("instance: SIGTERM, restart", "B", NOTHING, stop_instance(signal.SIGTERM), "term", early=True),
    Fault("instance: SIGINT, restart", "B", NOTHING, stop_instance(signal.SIGINT), "int"),
    Fault("instance: SIGSTOP, SIGCONT", "one", STORAGE | KEYS, freeze_instance, early=True),
    Fault("PostgreSQL: SIGKILL, restart", "all", STORAGE, restart_postgres(signal.SIGKILL), early=True),
    Fault("PostgreSQL: immediate stop, restart", "all", STORAGE, restart_postgres(signal.SIGQUIT)),
    Fault("PostgreSQL: fast restart", "all", STORAGE, restart_postgres(signal.SIGINT, at_once=True)),
    Fault("PostgreSQL: SIGSTOP, SIGCONT", "all", STORAGE, lambda target: freeze(target.postgres, target.seconds)),
    Fault("PostgreSQL: all sessions terminated", "all", STORAGE, terminate_backends),
    Fault("PostgreSQL: connections cut and refused", "some", STORAGE, refuse("storage")),
    Fault("PostgreSQL: connections black-holed", "some", STORAGE, hold("storage"), early=True),
    Fault("PostgreSQL: connections slow", "some", STORAGE, slow_down("storage")),
    Fault("PostgreSQL: table `pets` locked", "all", STORAGE, lock_pets),
    Fault("PostgreSQL: read-only", "all", CREATES, make_read_only),
    Fault("Redis: SIGKILL, restart", "all", KEYS, restart_redis, early=True),
    Fault("Redis: SIGSTOP, SIGCONT", "all", KEYS, lambda target: freeze(target.redis, target.seconds)),
    Fault("Redis: connections cut and refused", "some", KEYS, refuse("keys")),
    Fault("Redis: connections black-holed", "some", KEYS, hold("keys"), early=True),
    Fault("Redis: connections slow", "some", KEYS, slow_down("keys")),
    Fault("Redis: CLIENT KILL TYPE normal", "all", KEYS, kill_redis_clients),
)
