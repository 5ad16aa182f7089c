"""Faults that replace the store by an earlier backup of it, while instances use it.

The pets whose creation was confirmed before the backup must be there afterwards, with their ids. Those that were
confirmed later are gone, and counted; none of them may be seen again, unless an attempt whose outcome is unknown adds
it. Only the API keys of the backup are accepted: those that were revoked after it are valid again, and those that were
created after it are not. The log of each instance says that the store has changed.
"""

import asyncio
import contextlib
import shutil
import time
import uuid
from pathlib import Path
from typing import Any

from harness import readers
from harness.client import Client
from harness.creators import attempt, create_request
from harness.history import ALTERED
from harness.http_client import Request

LOST = "a backup lacks a pet whose creation was confirmed before it"
SILENT = "/ready stays 200 although the file was overwritten"
CREATES = 20  # that must be refused while the file is overwritten
NOTICED = 30.0  # seconds after which an instance has noticed what happened to its store, on a machine that stalls


class Backup:
    """A backup that is made under load, and three API keys that tell the states of the store apart."""

    def __init__(self, target: Any):
        self.load, self.stage, self.commands = target.load, target.stage, target.load.commands
        self.path = self.stage.folder / f"{uuid.uuid4()}.backup"
        self.names: dict[int, str] = {}  # of the pets in the backup, by their ids
        self.keys: dict[str, int] = {}  # tokens, with the status that they get after the restore

    async def make(self) -> None:
        ledger, labels = self.load.ledger, {name: f"{name}-{uuid.uuid4()}" for name in ("before", "again", "later")}
        revoked = await self.commands.create(labels["before"])
        await self.commands.revoke(await self.commands.find(labels["before"]))
        valid_again = await self.commands.create(labels["again"])
        confirmed = {create.id: create.name for create in ledger.acknowledged}
        self.names = await self.stage.back_up(self.path)
        for identity, name in confirmed.items():
            if self.names.get(identity) != name:
                self.load.journal.violate(LOST, None, f"{identity} {name}")
        for name in set(self.names.values()) - ledger.creates.keys():
            self.load.journal.violate(ALTERED, None, f"in a backup: {name}")
        await self.commands.revoke(await self.commands.find(labels["again"]))
        later = await self.commands.create(labels["later"])
        self.keys = {revoked: 401, valid_again: 200, later: 401}
        if self.stage.has_other_keys:
            self.keys = {revoked: 401, valid_again: 401, later: 200}

    @contextlib.asynccontextmanager
    async def replaces_the_store(self):
        """In the block, the store is replaced by the backup."""
        self.load.history.begin_replacement()
        yield
        self.load.history.end_replacement(self.names, time.monotonic())
        gone = self.load.ledger.forget_gone()
        print(f"          {len(self.names):,} pets restored, {gone:,} later ones gone", flush=True)

    async def check_keys(self) -> list[str]:
        return [failure for name in self.stage.instances for failure in await self.check_keys_on(name)]

    async def check_keys_on(self, instance: str) -> list[str]:
        client, end, wrong = Client(self.load, "restore"), time.monotonic() + NOTICED, {}
        with contextlib.closing(client):
            for token, expected in self.keys.items():
                statuses = frozenset({200, 401})
                request = Request("list after a restore", "GET", "/v1/pets?limit=1", statuses, readers.USES, token)
                while (status := (await client.send(request, instance)).status) != expected:
                    if time.monotonic() > end:
                        wrong[expected] = status
                        break
                    await client.pause(0.1)
        return [f"a key gets {status} of {instance} after a restore, instead of {key}" for key, status in wrong.items()]


async def back_up(target: Any) -> None:
    """Lets the load go on after the backup, so that there is something to lose."""
    target.backup = Backup(target)
    await target.backup.make()
    await asyncio.sleep(target.seconds)


async def restore(target: Any) -> list[str]:
    async with target.backup.replaces_the_store():
        await target.stage.restore(target.backup.path)
    return await target.backup.check_keys()


async def copy_over(target: Any) -> list[str]:
    """Copies the backup over the open file. No create is confirmed from then on, until the service is stopped, the log
    is moved away, and the service starts on the backup."""
    stage, instance, backup, failures = target.stage, target.instances[0], target.backup, []
    async with backup.replaces_the_store():
        shutil.copyfile(backup.path, stage.file)
        failures += await creates_are_refused(target)
        failures += await instance.end()
        for name in (f"{stage.file}-wal", f"{stage.file}-shm"):
            Path(name).unlink(missing_ok=True)
        shutil.copyfile(backup.path, stage.file)
        await instance.start()
    return failures + await backup.check_keys()


async def creates_are_refused(target: Any) -> list[str]:
    load, instance, failures = target.load, target.instances[0], []
    client = Client(load, "after the copy")
    with contextlib.closing(client):
        for _ in range(CREATES):
            create = load.ledger.new()
            if await attempt(client, create, create_request(create, client.token), instance.name):
                failures.append(f"{create.name} was confirmed after the file was overwritten")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(NOTICED):
                while instance.ready:
                    await asyncio.sleep(0.05)
    return failures if not instance.ready else [*failures, SILENT]
