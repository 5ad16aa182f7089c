"""The results of a scenario, and the comparison of the storage with what the clients were promised."""

import re
from dataclasses import dataclass, field

from restarts.load import Client, Load
from soak.http_client import Request
from soak.ledger import STATUSES, Comparison, compare
from soak.rules import parse


@dataclass
class Results:
    title: str
    restarts: str  # number and kind
    load: Load
    comparison: Comparison
    stored: int  # pets on all pages
    wrong: list[str] = field(default_factory=list)  # such as exit codes

    @property
    def seconds(self) -> float:
        return self.load.ended - self.load.started

    @property
    def failed(self) -> int:
        return self.load.failures.total()

    def problems(self) -> list[str]:
        found = [f"{failure}: {count:,}" for failure, count in self.load.failures.most_common()]
        for name in ("lost", "doubled", "altered", "refused", "unknown"):
            if names := getattr(self.comparison, name):
                found.append(f"{len(names):,} pets {name}, for example {names[:3]}")
        return found + self.wrong


async def compare_with_storage(load: Load) -> tuple[Comparison, int]:
    """Reads all pages. Returns the comparison and the number of pets."""
    rows = []
    client = Client(load)
    link = "?limit=100"
    while link:
        request = Request("page of the end", "GET", f"/v1/pets{link}", frozenset({200}), frozenset(), load.token)
        response = await client.send(request)
        if not response:
            break
        for pet in parse(response.body):
            status = STATUSES.index(pet["status"]) + 1 if "status" in pet else None
            rows.append([pet["id"], pet["name"], pet["categoryId"], status])
        found = re.fullmatch(r'<(\?[^>]*)>; rel="next"', response.headers.get("link", ""))
        link = found and found[1]
    client.close()
    return compare(load.ledger, rows), len(rows)
