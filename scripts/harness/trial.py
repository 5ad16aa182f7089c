"""Runs the container image and compose.yaml without a container engine, for scripts/check-deploy:

    unshare --net --mount --pid --fork --kill-child --mount-proc python3 -m harness.trial PROGRAM FOLDER

The program runs as user 65532 in the tree of the image, which is read-only, with the files that compose.yaml mounts.
PostgreSQL, Redis and HAProxy are those of the system. FOLDER has the variables of each service in compose.json. The
script needs root. Every port is free in its namespaces, with which all processes and mounts end.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from harness.servers import START_TIMEOUT, CommandError, Server, as_postgres, postgres_programs, run, succeeds
from harness.service import back_up
from harness.tool import REPOSITORY, call, say

program, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
# With a name that a shell would split or take for an option.
image, secrets, hosts = folder / "-image's tree", folder / "compose-secrets", folder / "hosts"
VARIABLES = json.loads((folder / "compose.json").read_text())
COMPOSE = REPOSITORY / "deploy/compose"
INSTANCES = {"animal-store-1": "127.0.0.2", "animal-store-2": "127.0.0.3"}
HOSTS = "127.0.0.1 localhost postgres redis\n" + "".join(f"{address} {name}\n" for name, address in INSTANCES.items())
# The proxy, and the gateway of its network, which is the client of a published port.
PROXY = re.search(r"ipv4_address: ([0-9.]*)", (REPOSITORY / "compose.yaml").read_text())[1]
GATEWAY = PROXY.rpartition(".")[0] + ".1"
EMPTY_REDIS = 6390
REX = ("--json", '{"name":"Rex","categoryId":1}')


def in_image(variables: dict[str, str], *arguments: str) -> list:
    """The command of the program, as an engine runs it."""
    names = [f"{name}={value}" for name, value in variables.items()]
    root = ["unshare", f"--root={image}", "--wd=/etc/animal-store", "--setgid=65532", "--setuid=65532"]
    return ["env", "--ignore-environment", "PATH=/usr/bin", *names, *root, "animal-store", *arguments]


class Process(Server):
    """A process that is ready when a command succeeds."""

    def __init__(self, name: str, command: list, ready: list):
        super().__init__(folder, name, 0, command)
        self.ready_command = ready

    async def is_ready(self) -> bool:
        return await succeeds(run(*self.ready_command))

    async def expect_end(self) -> None:
        if failures := await self.end():
            raise CommandError(*failures)


def instance(name: str, variables: dict[str, str]) -> Process:
    return Process(name, in_image(variables, "serve"), in_image(variables, "health"))


def request(token: str, *options: object, host: str = "127.0.0.1") -> list:
    curl = ["curl", "--silent", "--show-error", "--fail", "--max-time", "60"]
    return [*curl, "--header", f"Authorization: Bearer {token}", *options, f"http://{host}:8080/v1/pets"]


async def expect(text: str, token: str) -> None:
    if text not in (found := await run(*request(token, *(REX if "id" in text else ())))):
        raise CommandError(f"not {text}: {found}")


def mount() -> None:
    """Makes the tree of the image, and adds what an engine adds to it."""
    call(REPOSITORY / "deploy/image/assemble", program, image.name, cwd=folder)
    for path in (image / "dev", image / "proc", image / "run/secrets", folder / "data"):
        path.mkdir(parents=True)
    (image / "etc/hosts").touch()
    call("cp", "-a", image / "var/lib/animal-store", folder / "data")
    call("ip", "link", "set", "lo", "up")
    for address in (PROXY, GATEWAY):
        call("ip", "address", "add", address, "dev", "lo")
    hosts.write_text(HOSTS)
    call("deploy/compose/create-secrets", secrets)
    secrets.chmod(0o755)  # an engine mounts the files, not the folder
    call("mount", "--bind", image, image)
    call("mount", "--options", "remount,bind,ro", image)
    call("mount", "--rbind", "/dev", image / "dev")
    call("mount", "--types", "proc", "proc", image / "proc")
    call("mount", "--types", "tmpfs", "tmpfs", "/run")
    Path("/run/secrets").mkdir()
    for source, target in (
        (folder / "data/animal-store", image / "var/lib/animal-store"), (secrets, image / "run/secrets"),
        (secrets, "/run/secrets"), (hosts, "/etc/hosts"), (hosts, image / "etc/hosts"),
    ):
        call("mount", "--bind", source, target)


async def try_image() -> None:
    say("the image alone: pets and API keys in a file")
    token = (await run(*in_image({}, "keys", "create", "--create", "--label", "first"))).strip()
    alone = instance("file", {})
    await alone.start()
    await expect('"id":1', token)
    await alone.expect_end()


async def start_servers() -> None:
    say("compose.yaml: PostgreSQL, Redis, migration, grants")
    programs, data = postgres_programs(), Path("/run/postgres")
    data.mkdir()
    options = ["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--username=owner"]
    initdb = as_postgres(data, programs / "initdb", "-D", data, *options)
    await run(*initdb, "--pwfile=/run/secrets/postgres_owner_password", cwd="/")
    postgres = as_postgres(data, programs / "postgres", "-D", data, "-k", data)
    await Process("postgres", postgres, ["pg_isready", "--host=127.0.0.1"]).start()
    redis = ["redis-server", "--dir", folder, "--appendonly", "yes", "--appendfsync", "always"]
    await Process("redis", [*redis, "--aclfile", "/run/secrets/redis_users"], ["redis-cli", "ping"]).start()
    owner = os.environ | {"PGPASSWORD": (secrets / "postgres_owner_password").read_text()}
    psql = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
    database = ["--host=127.0.0.1", "--username=owner", "--dbname=postgres", "--command=CREATE DATABASE store"]
    await run(*psql, *database, env=owner)
    call("mount", "--bind", COMPOSE / "animal-store.toml", image / "etc/animal-store/animal-store.toml")
    await run(*in_image(VARIABLES["migrate"], "migrate"))
    for _ in ("first", "again"):
        service = os.environ | {"PGSERVICEFILE": "/run/secrets/postgres_service"}
        await run(*psql, f"--file={COMPOSE / 'grants.sql'}", "service=owner", env=service)


async def try_compose() -> None:
    say("compose.yaml: two instances behind HAProxy")
    token = (await run(*in_image(VARIABLES["keys"], "keys", "create", "--label", "first"))).strip()
    # The instances share a network here, so each one has an address of its own, with the ports of the file.
    http, management = re.findall(r'\nlisten = "0\.0\.0\.0:(.*)"\n', (COMPOSE / "animal-store.toml").read_text())
    instances = []
    for name, address in INSTANCES.items():
        addresses = {"ANIMAL_STORE_HTTP__LISTEN": f"{address}:{http}"}
        addresses["ANIMAL_STORE_MANAGEMENT__LISTEN"] = f"{address}:{management}"
        instances.append(instance(name, VARIABLES[name] | addresses))
        await instances[-1].start()
    await run(*in_image(VARIABLES["animal-store-2"] | addresses, "doctor"))
    # The instances have the port on other addresses.
    text = (COMPOSE / "haproxy.cfg").read_text().replace("default-server ", f"default-server source {PROXY} ")
    (folder / "haproxy.cfg").write_text(text.replace("bind :8080", f"bind 127.0.0.1:8080\n    bind {PROXY}:8080"))
    await Process("haproxy", ["haproxy", "-db", "-f", folder / "haproxy.cfg"], request(token)).start()
    await expect('"id":1', token)
    for _ in range(4):
        await expect('"name":"Rex"', token)
    forged = ("--header", "X-Request-Id: forged", "--header", "X-Forwarded-For: 203.0.113.9")
    await run(*request(token, "--interface", GATEWAY, *forged, host=PROXY))
    lines = []
    async with asyncio.timeout(START_TIMEOUT):
        while not lines:
            logs = [each.log.read_text() for each in instances]
            lines = [line for log in logs for line in log.splitlines() if '"request_id":"forged"' in line]
            await asyncio.sleep(0.1)
    if not all('"method":"GET"' in log for log in logs):
        raise CommandError("an instance got no request")
    if len(lines) != 1 or f'"client":"{GATEWAY}"' not in lines[0]:
        raise CommandError(f"a client forged its address: {lines}")
    say("compose.yaml: a backup, and rehearsals of its restore, into a file and into empty servers")
    owner = (secrets / "postgres_migrate_url").read_text()
    await run("psql", owner, "--no-psqlrc", "--command=CREATE DATABASE rehearsal")
    redis = ["redis-server", "--port", EMPTY_REDIS, "--save", ""]
    await Process("empty-redis", redis, ["redis-cli", "-p", EMPTY_REDIS, "ping"]).start()
    empty = folder / "rehearsal.toml"
    empty.write_text(
        f"storage = {{backend = 'postgres', postgres.url = '{owner.removesuffix('store')}rehearsal'}}\n"
        f"keys = {{backend = 'redis', redis.url = 'redis://127.0.0.1:{EMPTY_REDIS}'}}\n"
    )
    for targets in (), (empty,):
        (backups := folder / f"backups-{len(targets)}").mkdir()
        options = ("--config", COMPOSE / "animal-store.toml")
        said = await back_up(program, backups, *options, env=VARIABLES["backup"], targets=targets)
        metrics = (backups / "animal-store-backup.prom").read_text()
        if ": 1 pets, restored in " not in said or "backup_success 1" not in metrics:
            raise CommandError(f"not a backup of one pet: {said}")
    for each in instances:
        await each.expect_end()


async def main() -> None:
    mount()
    await try_image()
    await start_servers()
    await try_compose()


asyncio.run(main())
