"""How much does the sweep of a million expired idempotency keys slow creates down?

Pets are in PostgreSQL (durable: set TMPDIR to a folder on a disk), API keys in memory. wrk creates pets at the limit of
the service, in turns of two seconds without and two seconds with an idempotency key: before a million records expire,
during their sweep, and after it. Prints the medians of wrk's figures; "at rest" is before and after the sweep. Takes
about five minutes.
"""

import argparse
import statistics
import sys
import time
from collections import defaultdict

from load import create_request, wrk
from servers import Postgres, Service, Workplace

PROGRAMS = ("wrk",)
OPTIONS = {
    "records": (1_000_000, "idempotency keys to sweep"),
    "turns": (15, "turns at rest before the sweep, and after it"),
}
TOKEN = "bench-sweep"
CONNECTIONS = 64
SECONDS = 2
# Turns that are not counted: the disk reaches its steady state of writing back.
SETTLING_TURNS = 10
KINDS = {"create": create_request(TOKEN), "create with a key": create_request(TOKEN, keyed=True)}

# The first record expires after the turns at rest.
RECORDS = """
    INSERT INTO idempotency_keys (api_key_id, key_digest, pet_digest, pet_id, expires_at)
    SELECT 'another', sha256(n::text::bytea), sha256('pet'), n, now() + interval '{} s' + n * interval '1 us'
    FROM generate_series(1, {}) AS n"""
REMAINING = "SELECT count(*) FROM idempotency_keys WHERE api_key_id = 'another'"


def measure(place: Workplace, options: argparse.Namespace) -> None:
    postgres = Postgres(place)
    settings = postgres.create_pets("bench", 100_000) | {"ANIMAL_STORE_KEYS__MEMORY__TOKENS": TOKEN}
    service = Service(place, "service", settings)
    measured = defaultdict(list)

    def turn(phase: str) -> None:
        for kind, request in KINDS.items():
            result = wrk(place, service, request, 201, SECONDS, CONNECTIONS)
            if result["refused"] or result["failed"] or not result["requests"]:
                sys.exit(f"{kind}, {phase}: {result}\n{service.log.read_text()[-1000:]}")
            measured[kind, phase].append((result["requests"] / result["seconds"], result["p50"], result["p99"]))

    def remaining() -> int:
        return int(postgres.sql("bench", REMAINING))

    seconds_at_rest = (SETTLING_TURNS + options.turns) * len(KINDS) * SECONDS
    records = RECORDS.format(seconds_at_rest, options.records)
    postgres.sql("bench", records, "VACUUM (ANALYZE) idempotency_keys", "CHECKPOINT")
    for _ in range(SETTLING_TURNS):
        turn("settling")
    while remaining() == options.records:
        turn("at rest")
    for kind in KINDS:  # the sweep began in the last turn
        measured[kind, "at rest"].pop()
    start = time.monotonic()
    while remaining():
        turn("during the sweep")
    seconds = time.monotonic() - start
    if not measured["create", "during the sweep"]:
        sys.exit("The sweep ended within one turn: use more --records")
    for _ in range(options.turns):
        turn("at rest")

    print("| | at rest: creates/s | p50 ms | p99 ms | during the sweep: creates/s | p50 ms | p99 ms | ratio of p99 |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        rest, swept = (
            [statistics.median(values) for values in zip(*measured[kind, phase], strict=True)]
            for phase in ("at rest", "during the sweep")
        )
        cells = [f"{rate:,.0f} | {p50:.2f} | {p99:.2f}" for rate, p50, p99 in (rest, swept)]
        print(f"| {kind} | {' | '.join(cells)} | {swept[2] / rest[2]:.2f} |")
    swept, rest = (len(measured["create", phase]) for phase in ("during the sweep", "at rest"))
    print(f"\n{options.records:,} records swept in about {seconds:.0f} s: {swept} turns, and {rest} at rest")
