"""What a response must look like, given its request and the faults that it can have met."""

from collections.abc import Iterator

from harness.http_client import Exchange, parse
from harness.timeline import Fault

CODES = {
    400: {"invalid_body", "invalid_query", "invalid_header", "malformed_request"},
    401: {"missing_api_key", "invalid_api_key"},
    403: {"insufficient_scope"},
    404: {"pet_not_found", "route_not_found"},
    405: {"method_not_allowed"},
    408: {"request_timeout"},
    409: {"idempotency_conflict"},
    415: {"unsupported_media_type"},
    422: {"idempotency_mismatch"},
    503: {"unavailable", "overloaded", "outcome_unknown"},
}
# During a shutdown, a connection that is idle for a second may be closed. A request needs the rest of it.
IDLE_GRACE = 0.9


def violations(exchange: Exchange, faults: list[Fault]) -> Iterator[str]:
    """Each rule that the exchange breaks."""
    if exchange.failure:
        if reason := forbidden_failure(exchange, faults):
            yield reason
        return
    yield from forbidden_status(exchange, faults)
    if not exchange.request.raw:
        yield from malformed(exchange)


def forbidden_failure(exchange: Exchange, faults: list[Fault]) -> str | None:
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


def forbidden_status(exchange: Exchange, faults: list[Fault]) -> Iterator[str]:
    request, status = exchange.request, exchange.status
    if status in request.expected:
        return
    if status != 503:
        yield f"status {status} instead of {'/'.join(map(str, sorted(request.expected)))}"
        return
    impaired = frozenset().union(*(fault.impairs for fault in faults)) & request.uses
    if not impaired:
        yield f"503 {exchange.error_code} without a fault that explains it"
    elif exchange.error_code == "outcome_unknown" and "creates" not in impaired:
        yield "outcome_unknown for a request that did not reach the storage"


def malformed(exchange: Exchange) -> Iterator[str]:
    request, response, headers = exchange.request, exchange.response, exchange.response.headers
    wanted = request.headers.get("X-Request-Id")
    if "x-request-id" not in headers:
        yield f"{response.status} without X-Request-Id"
    elif wanted and headers["x-request-id"] != wanted:
        yield "X-Request-Id is not that of the request"
    stored = headers.get("cache-control") != "no-store" and request.target.startswith(("/v1/", "/ready"))
    if headers.get("content-type") != "application/json" or stored:
        yield f"{response.status} with wrong Content-Type or Cache-Control"
    if response.status >= 400 and request.target == "/ready":
        yield from malformed_readiness(exchange)
    elif response.status >= 400:
        yield from malformed_error(exchange)


def malformed_readiness(exchange: Exchange) -> Iterator[str]:
    """`/ready` is not part of the API: it has a body of its own."""
    readiness = parse(exchange.response.body)
    if not isinstance(readiness, dict) or set(readiness) != {"status", "checks"}:
        yield f"{exchange.status} of /ready without its status and checks"
    if "retry-after" not in exchange.response.headers:
        yield f"{exchange.status} of /ready without Retry-After"


def malformed_error(exchange: Exchange) -> Iterator[str]:
    status, headers, code = exchange.status, exchange.response.headers, exchange.error_code
    if exchange.request.method != "HEAD":
        error = parse(exchange.response.body)
        if not isinstance(error, dict) or set(error) != {"code", "message", "status"}:
            yield f"{status} without the Error body"
            return
        if error["status"] != status or not error["message"]:
            yield f"{status} with another status, or no message, in its body"
        if code not in CODES.get(status, ()):
            yield f"{status} with the code {code}"
        if ("retry-after" in headers) != (status in (409, 503) and code != "outcome_unknown"):
            yield f"{status} {code} with a wrong Retry-After"
    if ("www-authenticate" in headers) != (status in (401, 403)):
        yield f"{status} with a wrong WWW-Authenticate"
