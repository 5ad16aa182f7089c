"""Every create that was sent and what is known about it, to be compared with the table at the end."""

import json
import random
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

# Pets that wait to be read on each instance. Further ones are only found by walks and in the table.
MAX_UNREAD = 200
STATUSES = ("available", "pending", "sold")


@dataclass(slots=True)
class Create:
    name: str  # unique
    category: int
    status: str | None
    key: str | None = None  # the Idempotency-Key
    id: int | None = None  # of the pet, once acknowledged
    uncertain: bool = False  # an attempt had an unknown outcome
    present: float | None = None  # end of the first operation that showed the pet

    def members(self) -> dict:
        members = {"name": self.name, "categoryId": self.category}
        return members | ({"status": self.status} if self.status else {})

    def body(self) -> bytes:
        return json.dumps(self.members()).encode()


class Ledger:
    def __init__(self, rng: random.Random, instances: Iterable[str]):
        self.rng, self.instances, self.run = rng, list(instances), uuid.uuid4().hex[:8]
        self.creates: dict[str, Create] = {}  # by name
        self.acknowledged: list[Create] = []
        # Acknowledged pets that an instance has not been seen to return.
        self.unread: deque[tuple[Create, str]] = deque()

    def new(self, key: str | None = None) -> Create:
        suffix = self.rng.choice(("", " Rex", " Łucja", ' "quoted\\"', " 🐈", " <b>&"))
        category = self.rng.choice((1, 7, -3, 2**63 - 1, -(2**63), self.rng.randrange(1000)))
        name = f"{self.run}-{len(self.creates)}{suffix}"
        create = Create(name, category, self.rng.choice((None, *STATUSES)), key)
        self.creates[name] = create
        return create

    def acknowledge(self, create: Create, pet: int) -> bool:
        """Records a 201. Returns false if an earlier 201 named another id."""
        if create.id is not None:
            return create.id == pet
        create.id = pet
        self.acknowledged.append(create)
        if len(self.unread) < MAX_UNREAD:
            self.unread += ((create, instance) for instance in self.instances)
        return True

    def random(self) -> Create | None:
        """An acknowledged create."""
        return self.rng.choice(self.acknowledged) if self.acknowledged else None


@dataclass
class Comparison:
    """Names of the pets on which the ledger and the table differ."""

    lost: list[str]  # acknowledged, but not in the table
    altered: list[str]  # in the table with another id or another value
    doubled: list[str]  # in the table more than once
    refused: list[str]  # in the table although the create was refused
    unknown: list[str]  # in the table, but not sent
    resolved: int  # creates with an unknown outcome that are in the table
    unresolved: int  # creates with an unknown outcome

    def problems(self) -> list[str]:
        found = ((name, getattr(self, name)) for name in ("lost", "altered", "doubled", "refused", "unknown"))
        return [f"{len(pets):,} pets {name}, for example {pets[:3]}" for name, pets in found if pets]


def compare(ledger: Ledger, rows: list[list]) -> Comparison:
    """Compares the ledger with all pets, as rows (id, name, category, status) of the table."""
    found: dict[str, list] = {}
    doubled, altered, refused, unknown, resolved = [], [], [], [], 0
    for row in rows:
        pet, name, category, status = row
        create = ledger.creates.get(name)
        if name in found:
            doubled.append(name)
        elif create is None:
            unknown.append(name)
        elif create.id is None and not create.uncertain:
            refused.append(name)
        elif (category, status) != (create.category, create.status) or create.id not in (None, pet):
            altered.append(name)
        elif create.id is None:
            resolved += 1
        found[name] = row
    lost = [create.name for create in ledger.acknowledged if create.name not in found]
    unresolved = sum(create.id is None and create.uncertain for create in ledger.creates.values())
    return Comparison(lost, altered, doubled, refused, unknown, resolved, unresolved)
