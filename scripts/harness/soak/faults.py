"""The faults: what each one does, which instances it affects, and what it may take from requests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM, Signals
from typing import Any

from harness.journal import CREATES, KEYS, NOTHING, STORAGE
from harness.proxies import Proxy
from harness.servers import Server
from harness.service import Instance


@dataclass
class Target:
    """What a fault acts upon."""

    stage: Any
    instances: list[Instance]  # that it affects
    seconds: float
    delay: float  # of each chunk in a slow connection


Action = Callable[[Target], Awaitable[list[str] | None]]  # returns failures, in words


@dataclass(frozen=True)
class Kind:
    name: str
    # Instances: the `last`, which alone is restarted so that a leak of the others shows, `one`, `some`, or `all`.
    scope: str
    impairs: frozenset[str]
    run: Action
    stop: str | None = None
    early: bool = False  # among the first of a run, so that short runs have the hardest ones


def during(begin: Action, end: Action) -> Action:
    """A fault that begins, lasts, and ends."""

    async def run(target: Target) -> None:
        await begin(target)
        try:
            await asyncio.sleep(target.seconds)
        finally:
            await end(target)

    return run


def server(target: Target, name: str) -> Server:
    """The first instance, `postgres` or `redis`."""
    return target.instances[0] if name == "instance" else getattr(target.stage, name)


def kill(name: str, number: Signals = SIGKILL) -> Action:
    return during(lambda target: server(target, name).stop(number), lambda target: server(target, name).start())


def freeze(name: str) -> Action:
    return during(lambda target: server(target, name).freeze(), lambda target: server(target, name).thaw())


def stop_gracefully(number: Signals) -> Action:
    async def stop(target: Target) -> list[str]:
        instance = target.instances[0]
        try:
            failures = await instance.end(number)
        except TimeoutError:
            await instance.stop(SIGKILL)
            failures = [f"{number.name}: {instance.name} did not end"]
        await instance.start()
        return failures

    return stop


def read_only(value: str) -> Action:
    statement = f"ALTER SYSTEM SET default_transaction_read_only = {value}"
    return lambda target: target.stage.postgres.sql(statement, "SELECT pg_reload_conf()")


def disturb(service: str, begin: Callable[[Proxy, float], Awaitable], end: Callable[[Proxy], Awaitable]) -> Action:
    """Sends commands to the proxies before a service, `storage` or `keys`."""

    async def send(target: Target, command: Callable[[Proxy], Awaitable]) -> None:
        for each in target.instances:
            await target.stage.proxies.run(command(getattr(target.stage, service)[each.name]))

    return during(lambda target: send(target, lambda each: begin(each, target.delay)), lambda target: send(target, end))


REFUSE = (lambda proxy, _: proxy.cut(), Proxy.accept)
HOLD = (lambda proxy, _: proxy.hold(), Proxy.release)
SLOW_DOWN = (Proxy.delay, lambda proxy: proxy.delay(0))
LOCK: Action = lambda target: target.stage.lock(target.seconds)

INSTANCE = (
    Kind("instance: SIGKILL, restart", "last", NOTHING, kill("instance"), "kill", early=True),
    Kind("instance: SIGTERM, restart", "last", NOTHING, stop_gracefully(SIGTERM), "term", early=True),
    Kind("instance: SIGINT, restart", "last", NOTHING, stop_gracefully(SIGINT), "int"),
    Kind("instance: SIGSTOP, SIGCONT", "one", STORAGE | KEYS, freeze("instance"), early=True),
)
SQLITE = INSTANCE + (Kind("SQLite: locked by another program", "all", CREATES, LOCK, early=True),)
POSTGRES = (
    Kind("PostgreSQL: SIGKILL, restart", "all", STORAGE, kill("postgres"), early=True),
    Kind("PostgreSQL: immediate stop, restart", "all", STORAGE, kill("postgres", SIGQUIT)),
    Kind("PostgreSQL: fast stop, restart", "all", STORAGE, kill("postgres", SIGINT)),
    Kind("PostgreSQL: SIGSTOP, SIGCONT", "all", STORAGE, freeze("postgres")),
    Kind("PostgreSQL: all sessions terminated", "all", STORAGE, lambda target: target.stage.postgres.end_sessions()),
    Kind("PostgreSQL: connections cut and refused", "some", STORAGE, disturb("storage", *REFUSE)),
    Kind("PostgreSQL: connections black-holed", "some", STORAGE, disturb("storage", *HOLD), early=True),
    Kind("PostgreSQL: connections slow", "some", STORAGE, disturb("storage", *SLOW_DOWN)),
    Kind("PostgreSQL: table `pets` locked", "all", STORAGE, LOCK),
    Kind("PostgreSQL: read-only", "all", STORAGE, during(read_only("on"), read_only("off"))),
)
# With keys in PostgreSQL.
ALONE = INSTANCE + tuple(replace(kind, impairs=STORAGE | KEYS) for kind in POSTGRES)
SHARED = INSTANCE + POSTGRES + (
    Kind("Redis: SIGKILL, restart", "all", KEYS, kill("redis"), early=True),
    Kind("Redis: SIGSTOP, SIGCONT", "all", KEYS, freeze("redis")),
    Kind("Redis: connections cut and refused", "some", KEYS, disturb("keys", *REFUSE)),
    Kind("Redis: connections black-holed", "some", KEYS, disturb("keys", *HOLD), early=True),
    Kind("Redis: connections slow", "some", KEYS, disturb("keys", *SLOW_DOWN)),
    Kind("Redis: CLIENT KILL TYPE normal", "all", KEYS, lambda target: target.stage.redis.kill_clients()),
)
