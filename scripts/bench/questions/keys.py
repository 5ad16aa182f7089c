"""What does the API key check cost with keys in Redis, and how soon is a revoked key refused?

Pets are in memory. Prints:

1. the time from the end of `animal-store keys revoke` to the first 401 of each of two instances;
2. the commands that Redis ran during requests with a valid and an unknown token in turn;
3. the CPU seconds of the service for 1000 requests, in interleaved rounds, beside requests that need no key.
"""

import argparse
import http.client
import json
import re
import socket
import statistics
import subprocess
import sys
import time

from load import cpu_for_1000
from servers import Redis, Service, Workplace, run

PROGRAMS = ("wrk", "redis-server", "redis-cli")
OPTIONS = {
    "rounds": (5, "rounds of all requests"),
    "seconds": (3, "seconds per measurement"),
    "revocations": (1_000, "keys to revoke"),
    "requests": (10_000, "requests while Redis's commands are counted"),
}


class Keys(Redis):
    def commands(self) -> dict[str, int]:
        output = run("redis-cli", "-p", str(self.port), "INFO", "commandstats")
        return {name: int(calls) for name, calls in re.findall(r"cmdstat_(\S+):calls=(\d+)", output)}

    def create(self) -> tuple[str, str]:
        """Returns the token and the id of a new key."""
        command = [self.place.program, "keys", "create", "--label", "bench"]
        created = subprocess.run(command, env=self.settings, check=True, capture_output=True, text=True)
        return created.stdout.strip(), json.loads(created.stderr)["api_key"]

    def revoke(self, key: str) -> None:
        run(self.place.program, "keys", "revoke", key, env=self.settings)


def connect(service: Service) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(service.host, service.port)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def list_pets(connection: http.client.HTTPConnection, token: str, expected: int | None = None) -> int:
    """Returns the status of the response."""
    connection.request("GET", "/v1/pets", headers={"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    response.read()
    if expected and response.status != expected:
        sys.exit(f"{response.status} instead of {expected}")
    return response.status


def measure_revocations(keys: Keys, instances: list[Service], count: int) -> None:
    connections = [connect(instance) for instance in instances]
    delays, accepted = [], 0
    for _ in range(count):
        token, key = keys.create()
        for connection in connections:
            list_pets(connection, token, 200)
        keys.revoke(key)
        start = time.perf_counter()
        for connection in connections:
            while list_pets(connection, token) != 401:
                accepted += 1
            delays.append(time.perf_counter() - start)
    delays.sort()
    median, longest = delays[len(delays) // 2] * 1e6, delays[-1] * 1e6
    print(f"{count} revocations, two instances: first 401 {median:.0f} µs (median), {longest:.0f} µs (longest)")
    print(f"after the end of `keys revoke`; requests accepted after it: {accepted}")


def count_commands(keys: Keys, instance: Service, valid: str, unknown: str, requests: int) -> None:
    connection = connect(instance)
    list_pets(connection, valid, 200)
    list_pets(connection, unknown, 401)
    before = keys.commands()
    for number in range(requests):
        list_pets(connection, (valid, unknown)[number % 2], (200, 401)[number % 2])
    difference = {name: count - before.get(name, 0) for name, count in keys.commands().items()}
    difference.pop("info", None)
    commands = ", ".join(f"{name} {count}" for name, count in difference.items() if count) or "none"
    print(f"\n{requests} requests with a valid and an unknown token in turn: commands in Redis: {commands}")


def measure_cpu(options: argparse.Namespace, requests: dict[str, tuple[Service, str, str]]) -> None:
    settings = {"connections": 64, "seconds": options.seconds, "failures": "Socket errors"}
    rounds = [[cpu_for_1000(*request, **settings) for request in requests.values()] for _ in range(options.rounds)]
    print("\n| requests | CPU s for 1000 | ratio to the first |\n|---|---:|---:|")
    for index, name in enumerate(requests):
        cost = statistics.median(costs[index] for costs in rounds)
        ratio = statistics.median(costs[index] / costs[0] for costs in rounds)
        print(f"| {name} | {cost:.4f} | {ratio:.2f} |", flush=True)


def measure(place: Workplace, options: argparse.Namespace) -> None:
    keys = Keys(place)
    pets = {"ANIMAL_STORE_STORAGE__BACKEND": "memory"}
    memory = Service(place, "memory", pets | {"ANIMAL_STORE_KEYS__MEMORY__TOKENS": "bench-keys"})
    instances = [Service(place, name, pets | keys.settings) for name in ("first", "second")]
    valid, _ = keys.create()
    measure_revocations(keys, instances, options.revocations)
    count_commands(keys, instances[0], valid, "unknown-token", options.requests)
    measure_cpu(
        options,
        {
            "404 without a key, outside of `/v1`": (memory, "/nowhere", "none"),
            "404 with a key in memory": (memory, "/v1/nowhere", "bench-keys"),
            "404 with a key in Redis": (instances[0], "/v1/nowhere", valid),
            "401 for a token that is not in memory": (memory, "/v1/nowhere", "unknown-token"),
            "401 for a token that is not in Redis": (instances[0], "/v1/nowhere", "unknown-token"),
        },
    )
