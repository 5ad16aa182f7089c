"""The service: its instances, its commands for API keys, and its settings."""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from harness.servers import HERE, CommandError, Machine, Server, accepts, free_port, run

BACKUP = Path(__file__).resolve().parents[2] / "deploy/backup"


def shared_storage(postgres_url: str, redis_port: int | None) -> dict[str, str]:
    """The settings of an instance that shares its pets and keys with others. Without Redis, all are in PostgreSQL."""
    storage = {"storage.backend": "postgres", "storage.postgres.url": postgres_url}
    keys = {"keys.backend": "redis", "keys.redis.url": f"redis://127.0.0.1:{redis_port}"}
    return storage | keys if redis_port else storage


def environment(settings: dict[str, object]) -> dict[str, str]:
    """The variables of settings, by their keys in the configuration file."""
    return {f"ANIMAL_STORE_{key.upper().replace('.', '__')}": str(value) for key, value in settings.items()}


class Instance(Server):
    """A running `animal-store serve`, by default with pets and keys in a file in the folder."""

    def __init__(
        self, folder: Path, name: str, program: Path, settings: dict[str, object] = {}, machine: Machine = HERE
    ):
        port, self.management_port = free_port(), free_port()
        addresses = {"http.listen": port, "management.listen": self.management_port}
        addresses = {key: f"{machine.host}:{port}" for key, port in addresses.items()}
        variables = environment(addresses | {"log.format": "json"} | settings)
        super().__init__(folder, name, port, [program, "serve"], machine, env=variables)

    async def is_ready(self) -> bool:
        return await super().is_ready() and await accepts(self.management_port, self.machine.host)


async def back_up(
    program: Path, folder: Path, *options: object, env: dict[str, str], cwd: Path = Path("/"), targets: Sequence = ()
) -> str:
    """Makes a backup in the folder by the script of the packages, and rehearses its restore into a file, or into the
    stores of a configuration. Returns the output of the rehearsal."""
    link = folder / "animal-store"  # the program may have another name
    if not link.exists():
        link.symlink_to(program)
    env = env | {"PATH": f"{folder}:{os.environ['PATH']}"}
    await run(BACKUP / "animal-store-backup", folder, "7", *options, env=env, cwd=cwd)
    return await run(BACKUP / "animal-store-rehearse-restore", folder, *targets, env=env, cwd=cwd)


class KeyCommands:
    """`animal-store keys` with the settings of the keys."""

    settled = staticmethod(lambda: True)  # whether what the storage says now will last

    def __init__(self, program: Path, folder: Path, settings: dict[str, object] = {}):
        self.program, self.folder, self.variables = program, folder, environment(settings)
        self.create_options = [] if settings else ["--create"]  # the file

    async def run(self, *arguments: str) -> str:
        return await run(self.program, "keys", *arguments, env=self.variables, cwd=self.folder)

    async def migrate(self) -> None:
        await run(self.program, "migrate", env=self.variables, cwd=self.folder)

    async def create(self, label: str, *options: str) -> str:
        """Returns the token of a new key."""
        return (await self.run("create", *self.create_options, "--label", label, *options)).strip()

    async def find(self, label: str) -> str:
        """Returns the id of the key with this label. A store that was replaced meanwhile may have none."""
        for key in json.loads(await self.run("list", "--json")):
            if key["label"] == label:
                return key["id"]
        raise CommandError(f"no API key has the label {label}")

    async def revoke(self, key: str) -> float:
        """Retries until the storage confirms that the key is revoked. Returns the time of the confirmation."""
        while True:
            try:
                await self.run("revoke", key)
                return time.monotonic()
            except CommandError as error:
                # An earlier attempt succeeded unconfirmed.
                if "no API key has this id" in str(error) and self.settled():
                    return time.monotonic()
            await asyncio.sleep(0.05)
