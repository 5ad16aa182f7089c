"""The workloads, and wrk, which sends them."""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

from harness.servers import run

THREADS = 2
PAGE = "?limit=20&status=available"
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


@dataclass(frozen=True)
class Workload:
    name: str
    request: str  # a Lua expression
    status: int = 200


def workloads(token: str, pets: int) -> list[Workload]:
    before, after = head("GET", "/ID", token).split("ID")
    return [
        Workload("list of 20 by status", f"'{head('GET', PAGE, token)}'"),
        Workload("get", f"'{before}' .. math.random({pets}) .. '{after}'"),
        Workload("create", create(token), 201),
        Workload("create with a key", create(token, keyed=True), 201),
        Workload("401 for an unknown token", f"'{head('GET', PAGE, 'unknown-token')}'", 401),
    ]


def head(method: str, path: str, token: str, fields: str = "") -> str:
    """A request without a body, escaped for Lua."""
    return rf"{method} /v1/pets{path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n{fields}\r\n"


def create(token: str, keyed: bool = False) -> str:
    """A create with a unique name, with a unique idempotency key if `keyed`."""
    body = '{"name":"%s-%d-%09d","categoryId":%d,"status":"available"}'
    length = len(body % (run_id(), THREADS, 0, 10))
    fields = rf"Content-Type: application/json\r\nContent-Length: {length}\r\n"
    values = "run, number, sent, math.random(10, 99)"
    if not keyed:
        return f"'{head('POST', '', token, fields)}' .. string.format('{body}', {values})"
    before, after = head("POST", "", token, rf"{fields}Idempotency-Key: KEY\r\n").split("KEY")
    return f"string.format('{before}%s-%d-%09d{after}{body}', run, number, sent, {values})"


async def wrk(folder: Path, port: int, workload: Workload, seconds: int, connections: int, check=False) -> dict:
    """Sends the requests of a workload. Compares the status of every response if `check`."""
    script = folder / "load.lua"
    values = {"REQUEST": workload.request, "CHECK": str(check).lower(), "STATUS": workload.status, "RUN": run_id()}
    script.write_text(re.sub("|".join(values), lambda name: str(values[name[0]]), LUA))
    load = ["-t", min(THREADS, connections), "-c", connections, "-d", f"{seconds}s", "-s", script]
    return json.loads((await run("wrk", *load, f"http://127.0.0.1:{port}")).splitlines()[-1])


def run_id() -> str:
    """A prefix of unique names and keys."""
    return f"{time.time_ns():x}"
