"""The requests of the load: the bytes that are sent, the labels under which the service counts them, and the statuses
that they can get. Any of them can also get 503 during a fault.

The load repeats a cycle of requests. Its idempotency keys contain the number of the cycle, so the order of all requests
is the same in each run.
"""

import json
from dataclasses import dataclass

LISTS, CREATE, GET, NONE = "listPets", "createPet", "getPet", "none"
# Pets 1 to PETS exist before the load.
PETS = 1000
UNKNOWN_TOKEN = "observe-unknown-token"


@dataclass(frozen=True)
class Request:
    operation: str
    method: str  # as a label: `other` for a method that no operation has
    expected: frozenset[int]
    data: bytes
    has_body: bool = True  # of the response
    closes: bool = False  # the connection ends after the response, which need not say so

    @property
    def allowed(self) -> frozenset[int]:
        return self.expected | {503}


@dataclass(frozen=True)
class Tokens:
    writers: list[str]
    reader: str  # of a key with the scope `read`
    revoked: str  # of a key that is revoked during the load


def request(operation: str, line: str, expected: set[int], token: str | None, pet=None, **fields: str) -> Request:
    """A request with the request line `line` and, if `pet` is given, with a body of JSON."""
    method = line.split()[0]
    head = [f"{line} HTTP/1.1", "Host: observe"]
    if token:
        head.append(f"Authorization: Bearer {token}")
    body = b""
    if pet is not None:
        body = pet if isinstance(pet, bytes) else json.dumps(pet).encode()
        fields = {"Content-Type": "application/json", **fields}
        head.append(f"Content-Length: {len(body)}")
    head += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    data = "\r\n".join([*head, "", ""]).encode() + body
    label = method if method in ("GET", "HEAD", "POST") else "other"
    return Request(operation, label, frozenset(expected), data, method != "HEAD")


def cycle(process: int, number: int, tokens: Tokens) -> list[Request]:
    """The requests of one cycle, of which each process has its own."""
    token = tokens.writers[(number + 2 * process) % len(tokens.writers)]
    pet = {"name": f"observe-{process}-{number}", "categoryId": number, "status": "available"}
    known = 1 + number % PETS

    def keyed(expected: set[int], age: int, pet: dict) -> Request:
        """A create with the idempotency key of the cycle that is `age` cycles older."""
        older = tokens.writers[(number + 2 * process - age) % len(tokens.writers)]
        key = f"{process}-{number - age}"
        return request(CREATE, "POST /v1/pets", expected, older, pet, Idempotency_Key=key)

    same_pet = {"name": "observe-retry", "categoryId": 1}
    key_pair = keyed({201, 409}, 0, same_pet)
    return [
        # The next but one request is sent to the same instance at the same time.
        key_pair,
        request(LISTS, "GET /v1/pets", {200}, token),
        key_pair,
        request(LISTS, "GET /v1/pets?status=available&limit=5", {200}, token),
        keyed({201}, 2, same_pet),
        keyed({201, 422}, 3, {"name": "observe-other", "categoryId": 2}),
        request(CREATE, "POST /v1/pets", {201}, token, pet),
        request(CREATE, "POST /v1/pets", {400}, token, {"name": " "}),
        request(CREATE, "POST /v1/pets", {400}, token, b'{"name"'),
        request(CREATE, "POST /v1/pets", {403}, tokens.reader, pet),
        request(CREATE, "POST /v1/pets", {415}, token, pet, Content_Type="text/plain"),
        request(CREATE, "POST /v1/pets", {401}, UNKNOWN_TOKEN, pet),
        request(GET, f"GET /v1/pets/{known}", {200}, token),
        request(GET, f"GET /v1/pets/{known}", {200}, tokens.reader),
        request(GET, f"HEAD /v1/pets/{known}", {200}, token),
        request(GET, "GET /v1/pets/999999999", {404}, token),
        request(GET, "GET /v1/pets/rex", {404}, token),
        request(GET, f"GET /v1/pets/{known}", {401}, None),
        request(LISTS, "GET /v1/pets?limit=1", {200, 401}, tokens.revoked),
        request(LISTS, "GET /v1/pets?limit=2", {200, 401}, tokens.revoked),
        request(LISTS, "HEAD /v1/pets", {200}, token),
        request(LISTS, "GET /v1/pets?limit=0", {400}, token),
        request(LISTS, "GET /v1/pets", {401}, UNKNOWN_TOKEN),
        request(LISTS, "GET /v1/pets", {401}, None),
        request(LISTS, "GET /v1/pets?limit=3", {200}, tokens.reader),
        request(LISTS, "GET /v1/pets?limit=4", {200}, token),
        request(LISTS, "GET /v1/pets?limit=5", {200}, token),
        request(LISTS, "GET /v1/pets?limit=6", {200}, token),
        request(NONE, "GET /v1/orders", {404}, token),
        request(NONE, "GET /v1/orders", {401}, None),
        request(NONE, f"GET /observe/{process}/{number}", {404}, token),
        request(NONE, "HEAD /observe", {404}, None),
        request(NONE, "DELETE /v1/pets", {405}, token),
        request(NONE, "POST /v1/pets/1", {405}, token),
        request(NONE, "PURGE /v1/pets", {405}, token),
        request(NONE, "GET /openapi.json", {200}, None),
        # Refused below the application.
        Request(NONE, "other", frozenset({400}), b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", closes=True),
    ]
