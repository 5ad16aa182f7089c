"""The faults: what each one does, which instances it affects, and what it may take from requests."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM, Signals
from typing import Any

from harness.proxies import Proxy
from harness.servers import Instance, Postgres, Redis, Server

NOTHING: frozenset[str] = frozenset()
CREATES = frozenset({"creates"})
STORAGE = frozenset({"reads", "creates"})
KEYS = frozenset({"keys"})


@dataclass
class Target:
    """What a fault acts upon. `instances` are those that it affects."""

    servers: Any  # the stage
    instances: list[Instance]
    seconds: float
    delay: float  # of each chunk in a slow connection
    failures: list[str]  # of the servers under test, in words

    @property
    def postgres(self) -> Postgres:
        return self.servers.postgres

    @property
    def redis(self) -> Redis:
        return self.servers.redis

    async def wait(self) -> None:
        await asyncio.sleep(self.seconds)


Action = Callable[[Target], Awaitable[None]]


@dataclass(frozen=True)
class Kind:
    name: str
    # Instances: the `last`, which alone is restarted so that a leak of the others shows, `one`, `some`, or `all`.
    scope: str
    impairs: frozenset[str]
    run: Action
    stop: str | None = None
    early: bool = False  # among the first of a run, so that short runs have the hardest ones


async def kill_instance(target: Target) -> None:
    await target.instances[0].stop(SIGKILL)
    await target.wait()
    await target.instances[0].start()


def stop_instance(number: Signals) -> Action:
    async def stop(target: Target) -> None:
        try:
            code = await target.instances[0].stop(number)
        except TimeoutError:
            target.failures.append(f"{number.name}: the instance did not end")
            code = await target.instances[0].stop(SIGKILL)
        if code != 0:
            target.failures.append(f"{number.name}: the instance ended with exit code {code}")
        await target.instances[0].start()

    return stop


def freeze(server: Callable[[Target], Server]) -> Action:
    async def freeze(target: Target) -> None:
        server(target).freeze()
        try:
            await target.wait()
        finally:
            server(target).thaw()

    return freeze


def restart(server: Callable[[Target], Server], number: Signals, at_once: bool = False) -> Action:
    async def restart(target: Target) -> None:
        await server(target).stop(number)
        await asyncio.sleep(0 if at_once else target.seconds)
        await server(target).start()

    return restart


async def make_read_only(target: Target) -> None:
    reload = "SELECT pg_reload_conf()"
    await target.postgres.sql("ALTER SYSTEM SET default_transaction_read_only = on", reload)
    await target.wait()
    await target.postgres.sql("ALTER SYSTEM RESET default_transaction_read_only", reload)


async def lock_file(target: Target) -> None:
    """Holds the lock of writers, as another program that uses the file does."""
    connection = sqlite3.connect(target.servers.file, isolation_level=None, timeout=30, check_same_thread=False)
    with closing(connection):
        await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
        await target.wait()


def disturb(service: str, begin: Callable[[Proxy, float], Awaitable], end: Callable[[Proxy], Awaitable]) -> Action:
    """Sends a command to the proxies before a service, `storage` or `keys`, and another one at the end."""

    async def disturb(target: Target) -> None:
        proxies = [getattr(target.servers, service)[instance.name] for instance in target.instances]
        for proxy in proxies:
            await target.servers.proxies.run(begin(proxy, target.delay))
        await target.wait()
        for proxy in proxies:
            await target.servers.proxies.run(end(proxy))

    return disturb


def refuse(service: str) -> Action:
    return disturb(service, lambda proxy, _: proxy.cut(), Proxy.accept)


def hold(service: str) -> Action:
    return disturb(service, lambda proxy, _: proxy.hold(), Proxy.release)


def slow_down(service: str) -> Action:
    return disturb(service, Proxy.delay, lambda proxy: proxy.delay(0))


def postgres(target: Target) -> Server:
    return target.postgres


def redis(target: Target) -> Server:
    return target.redis


INSTANCE = (
    Kind("instance: SIGKILL, restart", "last", NOTHING, kill_instance, "kill", early=True),
    Kind("instance: SIGTERM, restart", "last", NOTHING, stop_instance(SIGTERM), "term", early=True),
    Kind("instance: SIGINT, restart", "last", NOTHING, stop_instance(SIGINT), "int"),
    Kind("instance: SIGSTOP, SIGCONT", "one", STORAGE | KEYS, freeze(lambda target: target.instances[0]), early=True),
)
SQLITE = INSTANCE + (Kind("SQLite: locked by another program", "all", CREATES, lock_file, early=True),)
SHARED = INSTANCE + (
    Kind("PostgreSQL: SIGKILL, restart", "all", STORAGE, restart(postgres, SIGKILL), early=True),
    Kind("PostgreSQL: immediate stop, restart", "all", STORAGE, restart(postgres, SIGQUIT)),
    Kind("PostgreSQL: fast restart", "all", STORAGE, restart(postgres, SIGINT, at_once=True)),
    Kind("PostgreSQL: SIGSTOP, SIGCONT", "all", STORAGE, freeze(postgres)),
    Kind("PostgreSQL: all sessions terminated", "all", STORAGE, lambda target: target.postgres.terminate_sessions()),
    Kind("PostgreSQL: connections cut and refused", "some", STORAGE, refuse("storage")),
    Kind("PostgreSQL: connections black-holed", "some", STORAGE, hold("storage"), early=True),
    Kind("PostgreSQL: connections slow", "some", STORAGE, slow_down("storage")),
    Kind("PostgreSQL: table `pets` locked", "all", STORAGE, lambda target: target.postgres.lock_pets(target.seconds)),
    Kind("PostgreSQL: read-only", "all", CREATES, make_read_only),
    Kind("Redis: SIGKILL, restart", "all", KEYS, restart(redis, SIGKILL), early=True),
    Kind("Redis: SIGSTOP, SIGCONT", "all", KEYS, freeze(redis)),
    Kind("Redis: connections cut and refused", "some", KEYS, refuse("keys")),
    Kind("Redis: connections black-holed", "some", KEYS, hold("keys"), early=True),
    Kind("Redis: connections slow", "some", KEYS, slow_down("keys")),
    Kind("Redis: CLIENT KILL TYPE normal", "all", KEYS, lambda target: target.redis.kill_clients()),
)
