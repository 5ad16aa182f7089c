"""What a client gets through a proxy, and what the service knows about the client."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from restarts.curl import ATTACKER, CLIENT, CurlResponse, curl
from restarts.proxy_programs import ProxyProgram

PET = '{"name":"Rex","categoryId":1}'
JSON = ("--header", "Content-Type: application/json")
# Settings of the service with which the checks of 429 and 503 need few requests.
SETTINGS = {"ANIMAL_STORE_HTTP__AUTH_FAILURES__PER_MINUTE": "2"}


async def check_proxy(
    proxy: ProxyProgram, token: str, logs: list[Path],
    locked_storage: Callable[[], contextlib.AbstractAsyncContextManager],
) -> list[str]:
    """Returns the failed checks. Creates one pet."""
    wrong = []

    def expect(name: str, holds: bool, response: CurlResponse) -> None:
        if not holds:
            wrong.append(f"{name}: {response}")

    listed = await curl(proxy, token)
    expect("a list over HTTP/2", (listed.status, listed.version) == (200, "2"), listed)
    created = await curl(proxy, token, *JSON, "--data", PET)
    expect("a create", created.status == 201 and "location" in created.headers, created)
    expect("a create", json.loads(created.body)["name"] == "Rex", created)
    compressed = await curl(proxy, token, "--compressed", target="/openapi.json")
    expect("a compressed response", compressed.headers.get("content-encoding") == ["gzip"], compressed)

    forged = ("--header", "X-Forwarded-For: 203.0.113.9")
    for name, headers in (("address", ()), ("forged", forged)):
        request_id = f"{proxy.name}-{name}"
        response = await curl(proxy, token, "--header", f"X-Request-Id: {request_id}", *headers)
        expect("X-Request-Id", response.headers.get("x-request-id") == [request_id], response)
        if (client := await logged_client(logs, request_id)) != CLIENT:
            wrong.append(f"client in the log of the request {request_id}: {client}")

    for size in (20_000, 900_000):
        body = proxy.folder / "large.body"
        body.write_bytes(b"x" * size)
        refused = await curl(proxy, token, *JSON, "--data-binary", f"@{body}")
        expect(f"413 for {size} bytes", (refused.status, refused.code) == (413, "payload_too_large"), refused)
    async with locked_storage():
        refused = await curl(proxy, token, *JSON, "--data", PET)
    expect("503 with Retry-After", (refused.status, refused.code) == (503, "unavailable"), refused)
    expect("503 with Retry-After", "retry-after" in refused.headers, refused)
    for _ in range(6):
        limited = await curl(proxy, "wrong", address=ATTACKER)
    expect("429 with Retry-After", (limited.status, limited.code) == (429, "rate_limited"), limited)
    expect("429 with Retry-After", "retry-after" in limited.headers, limited)
    other = await curl(proxy, token)
    expect("another client after the 429", other.status == 200, other)
    return wrong


async def logged_client(logs: list[Path], request_id: str) -> str | None:
    """The client in the log line of a request."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        for log in logs:
            for line in log.read_text().splitlines():
                if f'"request_id":"{request_id}"' in line:
                    return json.loads(line).get("client")
        await asyncio.sleep(0.1)
    return None
