"""Checks that the clients see each pet as if each operation happened at one moment: linearizability.

A pet is a register that is written once: absent, then present with the values that were sent, under one id. Its
operations are the attempts at its create and the reads of it; a page is one read of each pet in its range of ids. An
attempt with a 201 takes effect between its request and its response, unless an earlier one with the same key has. A
refused attempt has no effect. Any other one takes effect at any later time, or never. Reads without a response are
left out.

If the store is replaced by a backup, the pets of the backup are present from then on, and no other one, unless an
attempt without a definite outcome adds it again. Operations that overlap the replacement are left out.

A history is linearizable if and only if that of each pet is (Herlihy and Wing, "Linearizability", 1990, theorem 1), and
that of a pet if and only if there is a time W, the moment of its creation, or infinity if it has none, with
    max(B, starts of the reads that miss the pet) <= W <= min(ends of the reads that return it, ends of the 201s)
where B is the time at which the first attempt that was not refused was sent. Proof: with such a W, the first attempt
happens at W, reads that miss the pet at their end or, if that is earlier, just before W, and everything else at its
start or, if that is later, just after W. Without one, some operation X that shows the pet ended before some Y began,
where Y is a read that misses it or the first attempt; but in every order, the pet is present at X, and remains so.

The right side is one time for each pet, `Create.present`, which the first response that shows the pet sets: the calls
come in the order of the responses. The left side needs no memory. A read that misses the pet and ends before `present`
is set also began before it, so that only later ones are compared with it. B is compared with it when it is set, and
when an attempt is refused.
"""

import math
import random
import uuid
from bisect import bisect_right, insort
from dataclasses import dataclass

STATUSES = ("available", "pending", "sold")
STALE = "history: a read that began after a pet was present did not return it"
UNSENT = "history: a pet was present before any attempt that can have created it"
DOUBLED = "history: one create has two ids"
SHARED = "history: one id has two pets"
ALTERED = "history: a pet with values that were not sent"

Violation = tuple[str, str]  # a rule and the pet


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


class Ledger:
    """Every create that was sent."""

    def __init__(self, rng: random.Random):
        self.rng, self.run = rng, uuid.uuid4().hex[:8]
        self.creates: dict[str, Create] = {}  # by name
        self.acknowledged: list[Create] = []  # with a 201, and in the store
        self.gone = 0  # creates with a 201 that the store lost when a backup replaced it

    def new(self, key: str | None = None) -> Create:
        suffix = self.rng.choice(("", " Rex", " Łucja", ' "quoted\\"', " 🐈", " <b>&"))
        category = self.rng.choice((1, 7, -3, 2**63 - 1, -(2**63), self.rng.randrange(1000)))
        name = f"{self.run}-{len(self.creates)}{suffix}"
        create = Create(name, category, self.rng.choice((None, *STATUSES)), key)
        self.creates[name] = create
        return create

    def forget_gone(self) -> int:
        """Forgets the outcome of creates whose pets are not present. Returns their number."""
        kept = [create for create in self.acknowledged if create.present is not None]
        gone = len(self.acknowledged) - len(kept)
        for create in self.acknowledged:
            create.id = create.id if create.present is not None else None
        self.acknowledged = kept
        self.gone += gone
        return gone


class History:
    """The operations of all clients. Each method returns the violations that its operation completes."""

    def __init__(self, creates: dict[str, Create]):
        self.creates = creates  # by the name, which is unique
        self.pets: dict[int, Create] = {}  # present ones by id
        # Their ids in ascending order: all, and by status.
        self.ids: dict[str | None, list[int]] = {status: [] for status in (None, *STATUSES)}
        # The times of attempts that can still be the first effect of their create, by name.
        self.attempts: dict[str, list[float]] = {}
        self.unsettled: set[tuple[str, float]] = set()  # names and times of attempts without a definite outcome
        self.since = -math.inf  # when the store was replaced; while it is being replaced, infinity
        self.operations = 0
        self.latest = -math.inf  # the latest response

    @property
    def newest(self) -> int:
        """The largest id of a present pet, or 0."""
        return self.ids[None][-1] if self.ids[None] else 0

    def attempt(self, create: Create, sent: float) -> None:
        """Records that an attempt at a create is sent."""
        self.operations += 1
        self.unsettled.add((create.name, sent))
        if create.present is None or create.name in self.attempts:
            self.attempts.setdefault(create.name, []).append(sent)

    def refuse(self, create: Create, sent: float, received: float) -> list[Violation]:
        """Records that an attempt had no effect."""
        self.advance(received)
        self.operations -= 1
        self.unsettled.discard((create.name, sent))
        attempts = self.attempts.get(create.name, [])
        if sent not in attempts:
            return []
        attempts.remove(sent)
        if not attempts:
            del self.attempts[create.name]
        possible = create.present is None or min(attempts, default=math.inf) <= create.present
        return [] if possible else [(UNSENT, create.name)]

    def confirm(self, pet: dict, sent: float, received: float) -> list[Violation]:
        """Records the 201 of an attempt."""
        self.advance(received)
        if sent < self.since:
            return []
        found = self.see(pet, received)
        self.unsettled.discard((pet["name"], sent))
        create = self.creates.get(pet["name"])
        if create and create.present is not None and sent <= create.present:
            self.attempts.pop(create.name, None)  # this attempt explains the earliest sight of the pet
        return found

    def read(self, identity: int, pet: dict | None, sent: float, received: float) -> list[Violation]:
        """Records a read by id: the pet, or None if it does not exist."""
        self.advance(received)
        if sent < self.since:
            return []
        self.operations += 1
        if pet is None:
            return self.miss([identity], sent)
        found = self.see(pet, received)
        return found if pet["id"] == identity else [*found, (SHARED, f"{identity} {pet}")]

    def page(
        self, pets: list[dict], after: int, last: bool, status: str | None, sent: float, received: float
    ) -> list[Violation]:
        """Records a page that begins after an id. The last page has all later pets, and each other page the pets up to
        its last one; with a status, only those that have it."""
        self.advance(received)
        if sent < self.since:
            return []
        found = [violation for pet in pets for violation in self.see(pet, received)]
        page, known = [pet["id"] for pet in pets], self.ids[status]
        end = math.inf if last else page[-1] if page else after
        expected = known[bisect_right(known, after):bisect_right(known, end)]
        self.operations += len(expected)
        if page != expected:
            found += self.miss(set(expected).difference(page), sent)
        return found

    def see(self, pet: dict, received: float) -> list[Violation]:
        """Notes that a pet is present at this time."""
        create, identity = self.creates.get(pet["name"]), pet["id"]
        if create is None:
            return [(ALTERED, str(pet))]
        found = []
        if pet != create.members() | {"id": identity}:
            found.append((ALTERED, str(pet)))
        if self.pets.get(identity) is create:
            return found
        if identity in self.pets:
            return [*found, (SHARED, f"{identity}: {self.pets[identity].name} and {create.name}")]
        if create.present is not None:
            return [*found, (DOUBLED, f"{create.name}: {identity}")]
        if create.name not in self.attempts:
            found.append((UNSENT, create.name))
        create.present = received
        self.pets[identity] = create
        for status in {None, create.status}:
            insort(self.ids[status], identity)
        return found

    def miss(self, identities, sent: float) -> list[Violation]:
        """Notes that a read which began at this time did not return these pets."""
        pets = (self.pets[identity] for identity in identities if identity in self.pets)
        return [(STALE, pet.name) for pet in pets if pet.present < sent]

    def begin_replacement(self) -> None:
        self.since = math.inf

    def end_replacement(self, names: dict[int, str], now: float) -> None:
        """The store has the pets with these ids and names."""
        self.since = now
        self.pets = {identity: self.creates[name] for identity, name in names.items()}
        self.attempts = {}
        for create in self.creates.values():
            create.present = None
        for ids in self.ids.values():
            ids.clear()
        for identity, create in sorted(self.pets.items()):
            create.present = -math.inf
            for status in {None, create.status}:
                self.ids[status].append(identity)
        for name, sent in self.unsettled:
            if self.creates[name].present is None:
                self.attempts.setdefault(name, []).append(sent)

    def advance(self, received: float) -> None:
        assert received >= self.latest, "responses must be recorded in their order"
        self.latest = received
