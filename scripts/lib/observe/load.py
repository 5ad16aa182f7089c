"""The load: processes that send the requests of the cycle over keep-alive connections and count the responses."""

import itertools
import socket
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from observe.requests import Request, Tokens, cycle

PROCESSES = 2
CONNECTIONS = 24  # of each process; every second one is to the second instance
REQUESTS_PER_SECOND = 1720  # of all processes: more than 100,000 in a minute
RESPONSE_TIMEOUT = 30.0


@dataclass
class Counts:
    """Responses by operation, method and status, and the responses with a status that was not expected."""

    responses: Counter = field(default_factory=Counter)
    unexpected: Counter = field(default_factory=Counter)

    def add(self, request: Request, status: int) -> None:
        self.responses[request.operation, request.method, str(status)] += 1
        if status not in request.allowed:
            self.unexpected[f"{status} for {request.data[:60]!r}"] += 1

    def __iadd__(self, other: "Counts") -> "Counts":
        self.responses += other.responses
        self.unexpected += other.unexpected
        return self


class Connection:
    """A keep-alive connection. It is opened again after a response with `Connection: close`."""

    def __init__(self, port: int):
        self.port, self.socket = port, None

    def send(self, request: Request) -> None:
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), RESPONSE_TIMEOUT)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(request.data)

    def receive(self, request: Request) -> int:
        """Returns the status of the response."""
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self.read()
        head = received[:end].lower() + b"\r\n"
        if request.has_body:
            missing = int(head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]) - len(received) + end + 4
            while missing > 0:
                missing -= len(self.read())
        if request.closes or b"\r\nconnection: close\r\n" in head:
            self.close()
        return int(head[9:12])

    def read(self) -> bytes:
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the service closed the connection before its response")
        return data

    def close(self) -> None:
        if self.socket:
            self.socket.close()
        self.socket = None


def send_together(connections: list[Connection], requests: Iterable[Request], counts: Counts) -> None:
    """Sends one request on each connection, then reads the responses."""
    sent = list(zip(connections, requests))
    for connection, request in sent:
        connection.send(request)
    for connection, request in sent:
        counts.add(request, connection.receive(request))


def send_load(process: int, ports: list[int], tokens: Tokens, seconds: float) -> Counts:
    """Sends the requests of one process at a constant rate. If the service is slower, the load takes longer."""
    connections = [Connection(ports[number % len(ports)]) for number in range(CONNECTIONS)]
    requests = itertools.chain.from_iterable(cycle(process, number, tokens) for number in itertools.count())
    rounds = round(seconds * REQUESTS_PER_SECOND / PROCESSES / CONNECTIONS)
    counts, start = Counts(), time.monotonic()
    for number in range(rounds):
        time.sleep(max(0.0, start + seconds * number / rounds - time.monotonic()))
        send_together(connections, itertools.islice(requests, CONNECTIONS), counts)
    for connection in connections:
        connection.close()
    return counts


def burst(port: int, requests: list[Request]) -> Counts:
    """Sends all requests at the same time, each on a connection of its own."""
    counts = Counts()
    connections = [Connection(port) for _ in requests]
    send_together(connections, requests, counts)
    for connection in connections:
        connection.close()
    return counts
