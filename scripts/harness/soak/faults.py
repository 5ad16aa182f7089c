"""The faults: what each one does, which instances it affects, and what it may take from requests."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM, Signals
from typing import Any

from harness.client import Load
from harness.journal import CREATES, EVERYTHING, KEYS, NOTHING, STORAGE
from harness.proxies import Proxy
from harness.servers import Server, running
from harness.restarts.proxies import PgBouncer
from harness.service import Instance
from harness.soak import restores


FILES = "", "-wal", "-shm"  # suffixes of the names of an SQLite file, its log and its shared memory
# What an instance logs.
IN_PLACE = "moved, removed, replaced or overwritten"
REPLACED = "a connection to PostgreSQL was lost"


@dataclass
class Target:
    """What a fault acts upon."""

    load: Load
    stage: Any
    instances: list[Instance]  # that it affects
    seconds: float
    delay: float  # of each chunk in a slow connection
    backup: Any = None  # that the preparation made


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
    prepare: Action | None = None  # before the fault begins
    replaces: bool = False  # the store
    logs: tuple[str, ...] = ()  # what each instance that it affects has to log


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


async def set_sequence_back(target: Target) -> None:
    await target.stage.postgres.sql("SELECT setval('pets_id_seq', 1)")


async def alter_table(target: Target) -> None:
    """Changes the type of a column that each read returns, without a rewrite."""
    end = time.monotonic() + target.seconds
    for change in itertools.cycle(("ALTER COLUMN name TYPE varchar", "ALTER COLUMN name TYPE text")):
        await target.stage.postgres.sql(f"ALTER TABLE pets {change}")
        await asyncio.sleep(1)
        if time.monotonic() > end:
            break


async def change_pool_mode(target: Target) -> None:
    """Leads connections through PgBouncer, in session mode, then in transaction mode, for which the instances are not
    configured, and in session mode again."""
    stage = target.stage
    pooler = PgBouncer(stage.folder, f"pooler-{time.monotonic()}", f"host=127.0.0.1 port={stage.postgres.port}")
    async with running(pooler):
        await lead_to(target, pooler.port)
        for mode in ("session", "transaction", "session"):
            await pooler.use_mode(mode)
            await asyncio.sleep(target.seconds / 3)
        await lead_to(target, stage.postgres.port)


async def lead_to(target: Target, port: int) -> None:
    for proxy in target.stage.storage.values():
        await target.stage.proxies.run(proxy.lead_to(port))


async def move_away(target: Target) -> None:
    file = target.stage.file
    for suffix in FILES:
        Path(f"{file}{suffix}").rename(f"{file}.moved{suffix}")


async def move_back(target: Target) -> None:
    file = target.stage.file
    for suffix in FILES:
        Path(f"{file}.moved{suffix}").rename(f"{file}{suffix}")


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
RESTORED = {"prepare": restores.back_up, "replaces": True}
KEYS_CHANGED = ("API key change seen",)
SQLITE = INSTANCE + (
    Kind("SQLite: locked by another program", "all", CREATES, LOCK, early=True),
    Kind("SQLite: file moved away and back", "all", EVERYTHING, during(move_away, move_back), logs=(IN_PLACE,)),
    Kind("SQLite: backup restored", "all", EVERYTHING, restores.restore, **RESTORED, logs=KEYS_CHANGED),
    Kind(
        "SQLite: backup copied over the file, restart", "all", EVERYTHING, restores.copy_over, "term", **RESTORED,
        logs=(IN_PLACE, "this store is a backup"),
    ),
)
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
    Kind(
        "PostgreSQL: sequence set back, migrate", "all", CREATES,
        during(set_sequence_back, lambda target: target.load.commands.migrate()), logs=("pets_pkey",),
    ),
    Kind("PostgreSQL: ALTER TABLE", "all", NOTHING, alter_table, logs=(REPLACED,)),
    Kind("PostgreSQL: pooler that changes its mode", "all", STORAGE, change_pool_mode, logs=(REPLACED,)),
    Kind(
        "PostgreSQL: backup restored", "all", STORAGE, restores.restore, **RESTORED,
        logs=("the table of pets was replaced",),
    ),
)
# With keys in PostgreSQL.
ALONE = INSTANCE + tuple(
    replace(
        kind, impairs=kind.impairs | KEYS if kind.impairs == STORAGE else kind.impairs,
        logs=KEYS_CHANGED if kind.replaces else kind.logs,
    )
    for kind in POSTGRES
)
SHARED = INSTANCE + POSTGRES + (
    Kind("Redis: SIGKILL, restart", "all", KEYS, kill("redis"), early=True),
    Kind("Redis: SIGSTOP, SIGCONT", "all", KEYS, freeze("redis")),
    Kind("Redis: connections cut and refused", "some", KEYS, disturb("keys", *REFUSE)),
    Kind("Redis: connections black-holed", "some", KEYS, disturb("keys", *HOLD), early=True),
    Kind("Redis: connections slow", "some", KEYS, disturb("keys", *SLOW_DOWN)),
    Kind("Redis: CLIENT KILL TYPE normal", "all", KEYS, lambda target: target.stage.redis.kill_clients()),
)
