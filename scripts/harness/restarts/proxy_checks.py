"""What a client gets through a proxy by curl, which has HTTP/2, and what the service knows about the client."""

import asyncio
import json
import time
from pathlib import Path
from types import SimpleNamespace

from harness.restarts.proxies import HOST, ProxyProgram
from harness.servers import START_TIMEOUT, run
from harness.stages import Stage

PET = '{"name":"Rex","categoryId":1}'
JSON = ("--header", "Content-Type: application/json")
# Settings of the service with which the checks of 429 and of the client's address need few requests.
SETTINGS = {"http.auth_failures.per_minute": 2, "http.trusted_proxies": "127.0.0.1"}
# Addresses of the loopback interface from which requests are sent.
CLIENT, ATTACKER = "127.0.0.5", "127.0.0.6"


async def curl(proxy: ProxyProgram, token: str, *arguments: str, target="/v1/pets", address=CLIENT) -> SimpleNamespace:
    """Sends a request from an address. Returns status, version of HTTP, headers with names in lower case, and body."""
    body = proxy.folder / "curl.body"
    body.write_text("")
    result = json.loads(await run(
        "curl", "--silent", "--show-error", "--cacert", proxy.certificate, "--resolve",
        f"{HOST}:{proxy.port}:127.0.0.1", "--interface", address, "--max-time", "60", "--output", body,
        "--header", f"Authorization: Bearer {token}", "--write-out",
        '{"status":%{http_code},"version":"%{http_version}","headers":%{header_json}}',
        *arguments, f"https://{HOST}:{proxy.port}{target}",
    ))
    return SimpleNamespace(**result, body=body.read_text())


def is_error(response: SimpleNamespace, status: int, code: str, *headers: str) -> bool:
    named = response.body.startswith("{") and json.loads(response.body).get("code") == code
    return response.status == status and named and all(name in response.headers for name in headers)


async def check_proxy(proxy: ProxyProgram, token: str, stage: Stage) -> list[str]:
    """Returns the failed checks. Creates one pet. While the storage is locked, creates get 503."""
    logs = [instance.log for instance in stage.instances.values()]
    wrong = []

    def expect(name: str, holds: bool, response: SimpleNamespace) -> None:
        if not holds:
            wrong.append(f"{name}: {response}")

    listed = await curl(proxy, token)
    expect("a list over HTTP/2", (listed.status, listed.version) == (200, "2"), listed)
    created = await curl(proxy, token, *JSON, "--data", PET)
    expect("a create", created.status == 201 and "location" in created.headers and "Rex" in created.body, created)
    compressed = await curl(proxy, token, "--compressed", target="/openapi.json")
    expect("a compressed response", compressed.headers.get("content-encoding") == ["gzip"], compressed)

    for name, headers in (("address", ()), ("forged", ("--header", "X-Forwarded-For: 203.0.113.9"))):
        request_id = f"{proxy.name}-{name}"
        response = await curl(proxy, token, "--header", f"X-Request-Id: {request_id}", *headers)
        expect("X-Request-Id", response.headers.get("x-request-id") == [request_id], response)
        if (client := await logged_client(logs, request_id)) != CLIENT:
            wrong.append(f"client in the log of the request {request_id}: {client}")

    for size in (20_000, 900_000):
        body = proxy.folder / "large.body"
        body.write_bytes(b"x" * size)
        refused = await curl(proxy, token, *JSON, "--data-binary", f"@{body}")
        expect(f"413 for {size} bytes", is_error(refused, 413, "payload_too_large"), refused)
    async with stage.locked("EXCLUSIVE"):
        refused = await curl(proxy, token, *JSON, "--data", PET)
    expect("503 with Retry-After", is_error(refused, 503, "unavailable", "retry-after"), refused)
    for _ in range(20):
        limited = await curl(proxy, "wrong", address=ATTACKER)
        if limited.status == 429:
            break
    expect("429 with Retry-After", is_error(limited, 429, "rate_limited", "retry-after"), limited)
    other = await curl(proxy, token)
    expect("another client after the 429", other.status == 200, other)
    return wrong


async def logged_client(logs: list[Path], request_id: str) -> str | None:
    """The client in the log line of a request."""
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end:
        for line in (line for log in logs for line in log.read_text().splitlines()):
            if f'"request_id":"{request_id}"' in line:
                return json.loads(line).get("client")
        await asyncio.sleep(0.1)
    return None
