"""HTTP/1.1 over one keep-alive connection: just enough to see what the service sends."""

import asyncio
import json
import time
import zlib
from dataclasses import dataclass, field

from harness.history import Create


class Lost(Exception):
    """The connection ended before a complete response arrived."""


@dataclass
class Request:
    operation: str  # name in the report
    method: str
    target: str
    expected: frozenset[int]  # statuses without a fault
    uses: frozenset[str] = frozenset()  # what a fault can take from it: keys, reads, creates
    token: str | None = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    create: Create | None = None  # that this is an attempt at
    raw: bytes | None = None  # sent instead of all this, to be refused below the application

    @property
    def labels(self) -> tuple[str, str]:
        """The operation and the method, as the metrics of the service name them."""
        method = self.method if self.method in ("GET", "HEAD", "POST") and not self.raw else "other"
        path = self.target.partition("?")[0]
        if path == "/v1/pets" and method != "other":
            return ("createPet" if method == "POST" else "listPets"), method
        return ("getPet" if path.startswith("/v1/pets/") and method in ("GET", "HEAD") else "none"), method

    def encode(self) -> bytes:
        if self.raw:
            return self.raw
        fields = {"Host": "shop.example"}
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        if self.body is not None:
            fields |= {"Content-Type": "application/json", "Content-Length": str(len(self.body))}
        fields |= self.headers
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return "\r\n".join([*lines, "", ""]).encode() + (self.body or b"")


@dataclass
class Response:
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass
class Exchange:
    """A request and what came of it. Without a response, `failure` is `refused` (nothing was sent), `lost` (the
    connection ended) or `silent` (no response within the timeout)."""

    request: Request
    instance: str
    sent: float = field(default_factory=time.monotonic)
    received: float = field(default_factory=time.monotonic)
    response: Response | None = None
    failure: str | None = None
    first: bool = True  # on its connection
    idle: float = 0.0  # seconds since the previous request on the connection

    @property
    def status(self) -> int | None:
        return self.response.status if self.response else None

    @property
    def error_code(self) -> str | None:
        error = parse(self.response.body) if self.response else None
        return error.get("code") if isinstance(error, dict) else None


class Connection:
    """A connection to a server. `last_used` is the time of the last request, None before the first one. The server
    counts the time for which the connection is idle from its response, which a busy client reads late."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer
        self.last_used: float | None = None

    @classmethod
    async def open(cls, port: int, host: str = "127.0.0.1", **options) -> "Connection":
        return cls(*await asyncio.open_connection(host, port, **options))

    def has_ended(self) -> bool:
        return self.reader.at_eof() or self.writer.is_closing()

    def close(self) -> None:
        self.writer.transport.abort()

    async def exchange(self, request: Request) -> Response:
        self.last_used = time.monotonic()
        try:
            self.writer.write(request.encode())
            await self.writer.drain()
            response = await self.read_response(request.method != "HEAD")
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Lost(repr(error)) from error
        return response

    async def read_response(self, has_body: bool) -> Response:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status_line, *lines = head.split("\r\n")[:-2]
        fields = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body = b""
        if has_body and headers.get("transfer-encoding") == "chunked":
            body = await self.read_chunks()
        elif has_body:
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        if body and headers.get("content-encoding") == "gzip":
            body = zlib.decompress(body, wbits=31)
        return Response(int(status_line.split(" ")[1]), headers, body)

    async def read_chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readuntil(b"\r\n")
        return body


def parse(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None
