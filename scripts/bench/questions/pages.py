"""What does a page cost in a small and in a large store in memory, and what does compression add?

Starts the service once per size, with pets and keys in memory, creates the pets over HTTP, and requests pages of 20
in interleaved rounds. Prints the CPU seconds of the service for 1000 requests (medians) and the ratio of the two sizes,
then the same for pages of the small store, uncompressed and compressed.
"""

import argparse
import json
import socket
import statistics
import sys
import urllib.request

from load import cpu_for_1000, cursor
from servers import Service, Workplace

PROGRAMS = ("wrk",)
OPTIONS = {
    "rounds": (5, "rounds per page"),
    "seconds": (3, "seconds per measurement"),
    "pets": (1_000_000, "pets in the large store; the small one has 1,000"),
}
TOKEN = "bench-pages"
SOLD = 20  # the last pets of the store; all others are available
BATCH = 200
PAGES = {
    "first page": lambda size: "limit=20",
    "by status, first page": lambda size: "limit=20&status=available",
    "by status, all of them at the end": lambda size: "limit=20&status=sold",
    "page in the middle": lambda size: f"limit=20&cursor={cursor(size // 2)}",
    "by status, page in the middle": lambda size: f"limit=20&status=available&cursor={cursor(size // 2)}",
}


class Store:
    """A service with `size` pets."""

    def __init__(self, place: Workplace, options: argparse.Namespace, size: int):
        settings = {"ANIMAL_STORE_STORAGE__BACKEND": "memory", "ANIMAL_STORE_KEYS__MEMORY__TOKENS": TOKEN}
        self.service = Service(place, f"service-{size}", settings)
        self.seconds, self.size = options.seconds, size
        with self.service.connect() as connection:
            for start in range(0, size, BATCH):
                count = min(BATCH, size - start)
                connection.sendall(b"".join(self.create_request(start + i) for i in range(count)))
                read_responses(connection, count)

    def create_request(self, index: int) -> bytes:
        status = "sold" if index >= self.size - SOLD else "available"
        body = json.dumps({"name": f"pet-{index:07}", "categoryId": index % 50, "status": status}).encode()
        head = (
            f"POST /v1/pets HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def cpu(self, query: str, *headers: str) -> float:
        target = f"/v1/pets?{query}"
        return cpu_for_1000(self.service, target, TOKEN, *headers, connections=16, seconds=self.seconds)

    def body_bytes(self, query: str, headers: dict[str, str]) -> int:
        url = f"{self.service.url}/v1/pets?{query}"
        request = urllib.request.Request(url, headers=headers | {"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request) as response:
            return len(response.read())


def read_responses(connection: socket.socket, count: int) -> None:
    buffer = b""
    while buffer.count(b"HTTP/1.1 201 ") < count or not buffer.endswith(b"}"):
        chunk = connection.recv(1 << 16)
        if not chunk:
            sys.exit(f"the service closed the connection: {buffer[-300:]!r}")
        buffer += chunk


def medians_and_ratio(costs: list[list[float]]) -> tuple[float, float, float]:
    first, second = (statistics.median(column) for column in zip(*costs, strict=True))
    return first, second, statistics.median(b / a for a, b in costs)


def measure(place: Workplace, options: argparse.Namespace) -> None:
    stores = [Store(place, options, size) for size in (1_000, options.pets)]
    print(f"| page | {' | '.join(f'{store.size:,} pets' for store in stores)} | ratio |\n|---|---:|---:|---:|")
    for name, query in PAGES.items():
        costs = [[store.cpu(query(store.size)) for store in stores] for _ in range(options.rounds)]
        small, large, ratio = medians_and_ratio(costs)
        print(f"| {name} | {small:.4f} | {large:.4f} | {ratio:.2f} |", flush=True)

    print("\n| page | bytes | compressed | CPU s for 1000 | compressed | ratio |\n|---|---:|---:|---:|---:|---:|")
    store = stores[0]
    for limit in (1, 10, 20, 100):
        query = f"limit={limit}"
        sizes = [store.body_bytes(query, headers) for headers in ({}, {"Accept-Encoding": "gzip"})]
        costs = [[store.cpu(query), store.cpu(query, "Accept-Encoding: gzip")] for _ in range(options.rounds)]
        plain, compressed, ratio = medians_and_ratio(costs)
        print(f"| {query} | {sizes[0]:,} | {sizes[1]:,} | {plain:.4f} | {compressed:.4f} | {ratio:.2f} |", flush=True)
