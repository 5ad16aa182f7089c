"""Requests through a proxy with curl, which has HTTP/2."""

import json
from dataclasses import dataclass

from restarts.load import HOST
from restarts.proxy_programs import ProxyProgram
from soak.servers import run

# Addresses of the loopback interface from which requests are sent.
CLIENT, ATTACKER = "127.0.0.5", "127.0.0.6"


@dataclass
class CurlResponse:
    status: int
    version: str  # of HTTP
    headers: dict[str, list[str]]  # names in lower case
    body: str

    @property
    def code(self) -> str | None:
        """The code of an Error body."""
        try:
            return json.loads(self.body)["code"]
        except (ValueError, TypeError, KeyError):
            return None


async def curl(proxy: ProxyProgram, token: str, *arguments: str, target="/v1/pets", address=CLIENT) -> CurlResponse:
    """Sends a request from an address."""
    body = proxy.folder / "curl.body"
    body.write_text("")
    text = await run(
        "curl", "--silent", "--show-error", "--cacert", proxy.certificate, "--resolve",
        f"{HOST}:{proxy.port}:127.0.0.1", "--interface", address, "--max-time", "20", "--output", body,
        "--header", f"Authorization: Bearer {token}", "--write-out", '{"info":%{json},"headers":%{header_json}}',
        *arguments, f"https://{HOST}:{proxy.port}{target}",
    )
    result = json.loads(text)
    info = result["info"]
    return CurlResponse(info["response_code"], info["http_version"], result["headers"], body.read_text())
