"""Every create that was sent, and what is known about it."""

import json
import random
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

# Pets that wait to be read on each instance. Further ones are only found by walks and at the end.
MAX_UNREAD = 200
STATUSES = ("available", "pending", "sold")


@dataclass(slots=True)
class Create:
    name: str  # unique
    category: int
    status: str | None
    key: str | None = None  # the Idempotency-Key
    id: int | None = None  # of the pet, once acknowledged
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

    def acknowledge(self, create: Create, pet: int) -> None:
        """Records a 201."""
        if create.id is None:
            create.id = pet
            self.acknowledged.append(create)
            if len(self.unread) < MAX_UNREAD:
                self.unread += ((create, instance) for instance in self.instances)

    def random(self) -> Create | None:
        """An acknowledged create."""
        return self.rng.choice(self.acknowledged) if self.acknowledged else None
