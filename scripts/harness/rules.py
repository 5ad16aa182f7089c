"""What a response must look like, given its request and the faults that it can have met."""

from collections.abc import Iterator

from harness.http_client import Exchange, parse

# During a shutdown, a connection that is idle for a second may be closed. A request needs the rest of it.
IDLE_GRACE = 0.9


def violations(exchange: Exchange, faults: list) -> Iterator[str]:
    """Each rule that the exchange breaks."""
    if exchange.failure:
        yield from forbidden_failure(exchange, faults)
        return
    yield from forbidden_status(exchange, faults)
    if not exchange.request.raw and exchange.request.target != "/ready":
        yield from malformed(exchange)


def forbidden_failure(exchange: Exchange, faults: list) -> Iterator[str]:
    # There is no recovery from a stop: it ends when the next process accepts connections.
    stops = {fault.stop for fault in faults if fault.stop and exchange.sent <= fault.end}
    if exchange.failure == "silent":
        yield "no response in time"
    elif "kill" in stops or (stops and exchange.failure == "refused"):
        return
    elif not stops:
        yield f"connection {exchange.failure} without a fault of the instance"
    elif exchange.first and "int" not in stops:
        # Accepting ends at once after SIGINT: a connection that the instance never accepted is reset.
        yield "request lost at a graceful stop, on a new connection"
    elif not exchange.first and exchange.idle < IDLE_GRACE:
        yield "request lost at a graceful stop"


def forbidden_status(exchange: Exchange, faults: list) -> Iterator[str]:
    request, status = exchange.request, exchange.status
    if status in request.expected:
        return
    if status < 500 and any(fault.replaces for fault in faults):
        return
    impaired = frozenset().union(*(fault.impairs for fault in faults)) & request.uses
    if status != 503:
        yield f"status {status} instead of {'/'.join(map(str, sorted(request.expected)))}"
    elif not impaired:
        yield f"503 {exchange.error_code} without a fault that explains it"
    elif exchange.error_code == "outcome_unknown" and "creates" not in impaired:
        yield "outcome_unknown for a request that did not reach the storage"


def malformed(exchange: Exchange) -> Iterator[str]:
    request, status, headers = exchange.request, exchange.status, exchange.response.headers
    request_id = headers.get("x-request-id")
    if request_id is None or request.headers.get("X-Request-Id", request_id) != request_id:
        yield f"{status} without the X-Request-Id of the request"
    stored = headers.get("cache-control") != "no-store" and request.target.startswith("/v1/")
    if headers.get("content-type") != "application/json" or stored:
        yield f"{status} with wrong Content-Type or Cache-Control"
    if ("www-authenticate" in headers) != (status in (401, 403)):
        yield f"{status} with a wrong WWW-Authenticate"
    if status >= 400 and request.method != "HEAD":
        error, code = parse(exchange.response.body), exchange.error_code
        if not isinstance(error, dict) or set(error) != {"code", "message", "status"}:
            yield f"{status} without the Error body"
        elif error["status"] != status or not error["message"]:
            yield f"{status} with a wrong Error body: {error}"
        elif ("retry-after" in headers) != (status in (409, 503) and code != "outcome_unknown"):
            yield f"{status} {code} with a wrong Retry-After"
