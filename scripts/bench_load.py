"""Requests for wrk, and what it saw of their answers."""

import json
import re
import time
from pathlib import Path

from bench_servers import Service, run

WRK_THREADS = 2

# wrk counts statuses from 400 on by itself. Looking at each one costs time: it is done while warming up.
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

if WATCH then
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
        '{"requests":%d,"seconds":%f,"refused":%d,"unexpected":%d,"unanswered":%d,"p50":%f,"p99":%f}',
        summary.requests, summary.duration / 1e6, errors.status, unexpected,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


def head(method: str, path: str, token: str, more: str = "") -> str:
    return rf"{method} /v1/pets{path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n{more}\r\n"


def create(token: str, keyed: bool = False) -> str:
    """In Lua: adds an animal that nobody else adds, with an idempotency key or without."""
    body = '{"name":"%s-%d-%09d","categoryId":%d,"status":"available"}'
    length = len(body % (run_id(), WRK_THREADS, 0, 10))
    fields = rf"Content-Type: application/json\r\nContent-Length: {length}\r\n"
    animal = "run, number, sent, math.random(10, 99)"
    if not keyed:
        return f"'{head('POST', '', token, fields)}' .. string.format('{body}', {animal})"
    before, after = head("POST", "", token, rf"{fields}Idempotency-Key: KEY\r\n").split("KEY")
    return f"string.format('{before}%s-%d-%09d{after}{body}', run, number, sent, {animal})"


def wrk(folder: Path, service: Service, request: str, status: int, seconds: int, connections: int, watch: bool) -> dict:
    """Sends a request, in Lua, over and over. The status of each answer is looked at only where `watch` says so."""
    script = folder / "load.lua"
    values = {"REQUEST": request, "WATCH": str(watch).lower(), "STATUS": str(status), "RUN": run_id()}
    script.write_text(re.sub("|".join(values), lambda name: values[name[0]], LUA))
    load = ["-t", str(WRK_THREADS), "-c", str(connections), "-d", f"{seconds}s", "-s", script]
    return json.loads(run("wrk", *load, f"http://{service.host}:{service.port}").splitlines()[-1])


def run_id() -> str:
    """Of names and keys that nobody had before."""
    return f"{time.time_ns():x}"
