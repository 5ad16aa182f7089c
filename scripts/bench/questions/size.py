"""How does the latency grow from a thousand pets in PostgreSQL to ten million?

Starts a PostgreSQL server with one database per size, and one service per database, with keys in memory. Needs 5 GB in
TMPDIR. Sends one request at a time over one connection per service, to the services in turn. Memory and disk do not
matter: all pets fit into shared_buffers, and fsync is off. Prints the microseconds until the response is complete
(medians over the rounds of a round's median and 99th percentile) and the ratio of the largest to the smallest store
(median over the rounds of the ratio of the medians).
"""

import argparse
import random
import statistics

from load import cursor, timed_get
from servers import Postgres, Service, Workplace

PROGRAMS = ()
OPTIONS = {
    "rounds": (9, "rounds of all pages"),
    "requests": (2_000, "requests per size, page and round"),
    "pets": (10_000_000, "pets in the largest store; the others have 1,000 and 100,000"),
}
TOKEN = "bench-size"
WARM_UP = 500
# The defaults are too small for the pets, and for the WAL of inserting them.
POSTGRES = {"shared_buffers": "2GB", "max_wal_size": "4GB", "fsync": "off"}
PAGES = {
    "first page": lambda size: "?limit=20",
    "page in the middle": lambda size: f"?limit=20&cursor={cursor(size // 2)}",
    "by status, first page": lambda size: "?limit=20&status=available",
    "by status, page in the middle": lambda size: f"?limit=20&status=available&cursor={cursor(size // 2)}",
    "one pet at random": lambda size: f"/{random.randint(1, size)}",
}


class Client:
    """A connection to a service with `size` pets."""

    def __init__(self, place: Workplace, postgres: Postgres, size: int):
        settings = postgres.create_pets(f"pets_{size}", size) | {"ANIMAL_STORE_KEYS__MEMORY__TOKENS": TOKEN}
        self.size = size
        self.connection = Service(place, f"service-{size}", settings).connect()

    def get(self, page: str) -> float:
        """Returns the microseconds until the response is complete."""
        return timed_get(self.connection, PAGES[page](self.size), TOKEN)


def measure_page(clients: list[Client], page: str, count: int) -> list[tuple[float, float]]:
    """Returns the median and the 99th percentile of `count` requests for each client."""
    turns = [[client.get(page) for client in clients] for _ in range(count)]
    return [(statistics.median(times), sorted(times)[count * 99 // 100]) for times in zip(*turns, strict=True)]


def measure(place: Workplace, options: argparse.Namespace) -> None:
    postgres = Postgres(place, **POSTGRES)
    clients = [Client(place, postgres, size) for size in (1_000, 100_000, options.pets)]
    for page in PAGES:
        measure_page(clients, page, WARM_UP)
    rounds = [[measure_page(clients, page, options.requests) for page in PAGES] for _ in range(options.rounds)]
    print(f"| page | {' | '.join(f'{client.size:,} pets' for client in clients)} | ratio |\n|---|---:|---:|---:|---:|")
    for page, cells in zip(PAGES, zip(*rounds, strict=True), strict=True):
        by_size = [map(statistics.median, zip(*cell, strict=True)) for cell in zip(*cells, strict=True)]
        times = " | ".join(f"{median:.0f} (99 %: {most:.0f})" for median, most in by_size)
        ratio = statistics.median(row[-1][0] / row[0][0] for row in cells)
        print(f"| {page} | {times} | {ratio:.2f} |")
