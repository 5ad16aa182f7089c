"""What a response must look like, given its request and the faults that it can have met."""

import json
from collections.abc import Iterator

from soak.timeline import Exchange, FaultRecord

CODES = {
    400: {"invalid_body", "invalid_query", "invalid_header", "malformed_request"},
    401: {"missing_api_key", "invalid_api_key"},
    403: {"insufficient_scope"},
    404: {"pet_not_found", "route_not_found"},
    408: {"request_timeout"},
    409: {"idempotency_conflict"},
    422: {"idempotency_mismatch"},
    503: {"unavailable", "overloaded", "outcome_unknown"},
}
# `shutdown.idle_grace`, less the time that a request needs: a connection that is idle for longer may be closed.
IDLE_GRACE = 0.9


def violations(exchange: Exchange, faults: list[FaultRecord]) -> Iterator[str]:
    """Each rule that the exchange breaks."""
    if exchange.failure:
        if reason := forbidden_failure(exchange, faults):
            yield reason
        return
    yield from forbidden_status(exchange, faults)
    yield from malformed(exchange)


def forbidden_failure(exchange: Exchange, faults: list[FaultRecord]) -> str | None:
    if exchange.failure == "silent":
        return "no response in time"
    # There is no recovery from a stop: it ends when the next process accepts connections.
    stops = {fault.stop for fault in faults if fault.stop and exchange.sent <= fault.end}
    if "kill" in stops or (stops and exchange.failure == "refused"):
        return None
    if exchange.failure == "refused":
        return "connection refused without a fault of the instance"
    if not stops:
        return "connection lost without a fault of the instance"
    if exchange.first:
        # Accepting ends at once after SIGINT: a connection that the instance never accepted is reset.
        return None if "int" in stops else "request lost at a graceful stop, on a new connection"
    return None if exchange.idle >= IDLE_GRACE else "request lost at a graceful stop"


def forbidden_status(exchange: Exchange, faults: list[FaultRecord]) -> Iterator[str]:
    request, status = exchange.request, exchange.status
    if status in request.expected:
        return
    if status != 503:
        yield f"status {status} instead of {'/'.join(map(str, sorted(request.expected)))}"
        return
    impaired = frozenset().union(*(fault.impairs for fault in faults)) & request.uses
    code = error_code(exchange)
    if not impaired:
        yield f"503 {code} without a fault that explains it"
    elif code == "outcome_unknown" and "creates" not in impaired:
        yield "outcome_unknown for a request that did not reach the storage"


def malformed(exchange: Exchange) -> Iterator[str]:
    response, headers = exchange.response, exchange.response.headers
    wanted = exchange.request.headers.get("X-Request-Id")
    if "x-request-id" not in headers:
        yield f"{response.status} without X-Request-Id"
    elif wanted and headers["x-request-id"] != wanted:
        yield "X-Request-Id is not that of the request"
    if headers.get("content-type") != "application/json" or headers.get("cache-control") != "no-store":
        yield f"{response.status} with wrong Content-Type or Cache-Control"
    if response.status >= 400:
        yield from malformed_readiness(exchange) if exchange.request.target == "/ready" else malformed_error(exchange)


def malformed_readiness(exchange: Exchange) -> Iterator[str]:
    """`/ready` is not part of the API: it has a body of its own."""
    readiness = parse(exchange.response.body)
    if not isinstance(readiness, dict) or set(readiness) != {"status", "checks"}:
        yield f"{exchange.response.status} of /ready without its status and checks"
    if "retry-after" not in exchange.response.headers:
        yield f"{exchange.response.status} of /ready without Retry-After"


def malformed_error(exchange: Exchange) -> Iterator[str]:
    response, headers = exchange.response, exchange.response.headers
    error = parse(response.body)
    if not isinstance(error, dict) or set(error) != {"code", "message", "status"}:
        yield f"{response.status} without the Error body"
        return
    if error["status"] != response.status or not error["message"]:
        yield f"{response.status} with another status, or no message, in its body"
    if error["code"] not in CODES.get(response.status, ()):
        yield f"{response.status} with the code {error['code']}"
    retries = response.status in (409, 503) and error["code"] != "outcome_unknown"
    if ("retry-after" in headers) != retries:
        yield f"{response.status} {error['code']} with a wrong Retry-After"
    if ("www-authenticate" in headers) != (response.status in (401, 403)):
        yield f"{response.status} with a wrong WWW-Authenticate"


def error_code(exchange: Exchange) -> str | None:
    error = parse(exchange.response.body) if exchange.response else None
    return error.get("code") if isinstance(error, dict) else None


def parse(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None
