"""Restarts of one process on a socket that its service manager keeps, with and without a proxy."""

import asyncio
import contextlib
import signal
import sqlite3
from pathlib import Path

from restarts.clients import running
from restarts.load import Load
from restarts.proxy_checks import SETTINGS, check_proxy
from restarts.proxy_programs import ProxyProgram, create_certificate
from restarts.results import Results, compare_with_storage
from restarts.service_manager import ActivatedService

# Seconds between two events.
INTERVAL = 0.5


async def restart_on_a_socket(folder: Path, program: Path, restarts: int, connections: int, number: signal.Signals):
    """Returns the results of restarts, each followed by a reload, under load."""
    service = ActivatedService(folder, program)
    try:
        load = Load(service.connect, await service.create_key())
        await service.start()
        wrong = await restart_under_load(service, load, restarts, connections, number)
        return await end("Socket activation", f"{restarts}, and {restarts} reloads", service, load, wrong)
    finally:
        await service.discard()


async def restart_behind(
    kind: type[ProxyProgram], folder: Path, program: Path, restarts: int, connections: int, number: signal.Signals
):
    """Returns the results of checks of a proxy, and of restarts behind it."""
    settings = SETTINGS | {"ANIMAL_STORE_HTTP__TRUSTED_PROXIES": "127.0.0.1"}
    service = ActivatedService(folder, program, **settings)
    proxy = kind(folder, await create_certificate(folder), service.port)
    try:
        token = await service.create_key()
        await service.start()
        await proxy.start()
        load = Load(proxy.connect, token)
        wrong = await restart_under_load(service, load, restarts, connections, number)
        results = await end(f"Behind {kind.title}", f"{restarts}, and {restarts} reloads", service, load, wrong)
        await service.start()
        results.wrong += await check_proxy(proxy, token, [service.log], lambda: locked(folder / "animal-store.db"))
        return results
    finally:
        await proxy.discard()
        await service.discard()


async def restart_under_load(
    service: ActivatedService, load: Load, restarts: int, connections: int, number: signal.Signals
) -> list[str]:
    """Returns the failures of the processes."""
    wrong = []
    async with running(load, connections):
        await asyncio.sleep(INTERVAL)
        for _ in range(restarts):
            if code := await service.restart(number):
                wrong.append(f"exit code {code}")
            await asyncio.sleep(INTERVAL)
            await service.reload()
            await asyncio.sleep(INTERVAL)
    return wrong


async def end(title: str, done: str, service: ActivatedService, load: Load, wrong: list[str]) -> Results:
    """Compares the storage with the load and stops the service."""
    comparison, stored = await compare_with_storage(load)
    if code := await service.stop(signal.SIGTERM):
        wrong.append(f"exit code {code} of the last stop")
    return Results(title, done, load, comparison, stored, wrong)


@contextlib.asynccontextmanager
async def locked(file: Path):
    """Holds the lock of the SQLite file, so that creates get 503."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()
