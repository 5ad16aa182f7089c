"""Requests to the service, and wrk, which sends them."""

import base64
import json
import re
import socket
import sys
import time

from servers import HttpServer, Service, Workplace, run

WRK_THREADS = 2

# wrk itself counts responses with a status of 400 or above. Only with `CHECK` is every status compared: it costs CPU.
LUA = """
local threads, sent, run = {}, 0, "RUN"
unexpected = 0

function setup(thread)
    table.insert(threads, thread)
    thread:set("number", #threads)
end

function init()
    math.randomseed(os.time() * 100 + number)
end

function request()
    sent = sent + 1
    return REQUEST
end

if CHECK then
    function response(status)
        if status ~= STATUS then unexpected = unexpected + 1 end
    end
end

function done(summary, latency)
    local errors, unexpected = summary.errors, 0
    for _, thread in ipairs(threads) do
        unexpected = unexpected + thread:get("unexpected")
    end
    print(string.format(
        '{"requests":%d,"seconds":%f,"refused":%d,"unexpected":%d,"failed":%d,"p50":%f,"p99":%f}',
        summary.requests, summary.duration / 1e6, errors.status, unexpected,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


def request_head(method: str, path: str, token: str, fields: str = "") -> str:
    """A request without a body, escaped for Lua."""
    return rf"{method} /v1/pets{path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n{fields}\r\n"


def create_request(token: str, keyed: bool = False) -> str:
    """A Lua expression: a create request with a unique name, with a unique idempotency key if `keyed`."""
    body = '{"name":"%s-%d-%09d","categoryId":%d,"status":"available"}'
    length = len(body % (run_id(), WRK_THREADS, 0, 10))
    fields = rf"Content-Type: application/json\r\nContent-Length: {length}\r\n"
    values = "run, number, sent, math.random(10, 99)"
    if not keyed:
        return f"'{request_head('POST', '', token, fields)}' .. string.format('{body}', {values})"
    before, after = request_head("POST", "", token, rf"{fields}Idempotency-Key: KEY\r\n").split("KEY")
    return f"string.format('{before}%s-%d-%09d{after}{body}', run, number, sent, {values})"


def wrk(
    place: Workplace, server: HttpServer, request: str, status: int, seconds: int, connections: int, check: bool = False
) -> dict:
    """Sends a request, a Lua expression, repeatedly. Compares the status of every response if `check`."""
    script = place.folder / "load.lua"
    values = {"REQUEST": request, "CHECK": str(check).lower(), "STATUS": str(status), "RUN": run_id()}
    script.write_text(re.sub("|".join(values), lambda name: values[name[0]], LUA))
    threads = min(WRK_THREADS, connections)
    load = ["-t", str(threads), "-c", str(connections), "-d", f"{seconds}s", "-s", script]
    return json.loads(run("wrk", *load, server.url).splitlines()[-1])


def cpu_for_1000(
    service: Service,
    target: str,
    token: str,
    *headers: str,
    connections: int,
    seconds: int,
    failures: str = "Socket errors|Non-2xx",
) -> float:
    """CPU seconds of the service for 1000 GET requests. Ends the program if wrk prints one of the failures."""
    before = service.cpu_seconds()
    load = ["-t1", f"-c{connections}", f"-d{seconds}s", "-H", f"Authorization: Bearer {token}"]
    load += [part for header in headers for part in ("-H", header)]
    text = run("wrk", *load, service.url + target)
    if re.search(failures, text):
        sys.exit(text)
    return (service.cpu_seconds() - before) * 1000 / int(re.search(r"(\d+) requests in", text)[1])


def timed_get(connection: socket.socket, target: str, token: str) -> float:
    """Returns the microseconds until the response is complete. Ends the program if its status is not 200."""
    request = f"GET /v1/pets{target} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    response = b""
    start = time.perf_counter()
    connection.sendall(request)
    while not complete(response):
        response += connection.recv(1 << 16) or sys.exit(f"the service closed the connection: {response!r}")
    end = time.perf_counter()
    if not response.startswith(b"HTTP/1.1 200 "):
        sys.exit(f"{target}: {response!r}")
    return (end - start) * 1e6


def complete(response: bytes) -> bool:
    head, end, body = response.partition(b"\r\n\r\n")
    return bool(end) and len(body) == int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])


def cursor(position: int) -> str:
    return base64.urlsafe_b64encode(position.to_bytes(8, "big")).decode().rstrip("=")


def run_id() -> str:
    """A prefix of unique names and keys."""
    return f"{time.time_ns():x}"
