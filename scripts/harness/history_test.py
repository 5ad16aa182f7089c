"""Tests of history.py. To run them: PYTHONPATH=scripts python3 -B -m unittest harness.history_test"""

import math
import random
import unittest
from dataclasses import dataclass

from harness.history import ALTERED, DOUBLED, SHARED, STALE, UNSENT, Create, History


class Rules(unittest.TestCase):
    """What the search below does not generate: wrong ids, wrong values, and the names of the rules."""

    def setUp(self) -> None:
        self.create, other = Create("Rex", 1, None), Create("Luna", 2, "sold")
        self.history = History({"Rex": self.create, "Luna": other})
        self.history.attempt(self.create, 1)
        self.history.attempt(other, 1)
        self.rex, self.luna = self.create.members() | {"id": 1}, other.members() | {"id": 1}
        self.assertEqual([], self.history.confirm(self.rex, 1, 2))

    def test_a_contradiction_is_named(self) -> None:
        for rule, identity, pet in (
            (STALE, 1, None), (SHARED, 1, self.luna), (SHARED, 7, self.rex), (DOUBLED, 2, self.rex | {"id": 2}),
            (ALTERED, 1, self.rex | {"categoryId": 2}), (ALTERED, 1, self.rex | {"status": "sold"}),
            (ALTERED, 2, {"id": 2, "name": "Max", "categoryId": 1}),
        ):
            with self.subTest(rule=rule, pet=pet):
                self.assertEqual([rule], [each for each, _ in self.history.read(identity, pet, 3, 4)])

    def test_a_refused_attempt_does_not_explain_a_pet(self) -> None:
        create = Create("Max", 1, None)
        self.history.creates["Max"] = create
        self.history.attempt(create, 3)
        self.assertEqual([], self.history.read(3, create.members() | {"id": 3}, 4, 5))
        self.assertEqual([(UNSENT, "Max")], self.history.refuse(create, 3, 6))

    def test_a_store_that_was_replaced_has_the_pets_of_the_backup_and_open_attempts(self) -> None:
        for name in ("Max", "Ann"):
            self.history.creates[name] = Create(name, 1, None)
            self.history.attempt(self.history.creates[name], 3)
        pet = {"id": 3, "name": "Max", "categoryId": 1}
        self.assertEqual([], self.history.confirm(pet, 3, 4))
        self.history.begin_replacement()
        self.assertEqual([], self.history.read(1, None, 5, 6))
        self.history.end_replacement({1: "Rex"}, 7)
        self.assertEqual([], self.history.read(3, None, 6, 8))
        self.assertEqual([(STALE, "Rex")], self.history.read(1, None, 9, 10))
        self.assertEqual([(UNSENT, "Max")], self.history.read(3, pet, 9, 10))
        self.assertEqual([], self.history.read(2, {"id": 2, "name": "Ann", "categoryId": 1}, 11, 12))

    def test_memory_is_that_of_the_pets(self) -> None:
        for time in range(2, 1000, 2):
            self.history.attempt(self.create, time)
            self.history.confirm(self.rex, time, time + 1)
            self.history.read(1, self.rex, time, time + 1)
        self.assertEqual(({"Luna": [1]}, [1]), (self.history.attempts, self.history.ids[None]))
        with self.assertRaises(AssertionError):  # a response out of order
            self.history.read(1, self.rex, 0, 1)


@dataclass
class Operation:
    """An operation on one pet, or a page."""

    kind: str  # confirmed, refused, unknown, page, get
    sent: int
    received: float
    pet: int  # the id, or that after which the page begins
    sees: tuple[int, ...] = ()
    last: bool = True
    status: str | None = None


STATUS = {1: None, 2: "sold", 3: "sold"}


def random_operation(rng: random.Random, effects: dict[int, float] | None) -> Operation:
    """A random operation. With effects, the times at which the pets are created, it returns what the pets are then."""
    sent = rng.randrange(12)
    received = rng.randrange(sent, 13)
    pet = rng.choice((1, 1, 2, 3))
    kind = rng.choice(("confirmed", "refused", "unknown", "page", "get", "get"))
    if kind in ("confirmed", "refused", "unknown"):
        if effects and kind == "confirmed" and effects[pet] > received:
            kind = "unknown"
        return Operation(kind, sent, math.inf if kind == "unknown" else received, pet)

    def is_present(each: int) -> bool:
        return rng.uniform(sent, received) >= effects[each] if effects else rng.random() < 0.5

    if kind == "get":
        return Operation(kind, sent, received, pet, (pet,) if is_present(pet) else ())
    after, status, limit = rng.randrange(3), rng.choice((None, "sold")), rng.randint(1, 3)
    sees = tuple(each for each in (1, 2, 3) if each > after and status in (None, STATUS[each]) and is_present(each))
    return Operation(kind, sent, received, after, sees[:limit], len(sees) <= limit, status)


def checked(operations: list[Operation]) -> bool:
    """Returns true if the history accepts the operations."""
    creates = {pet: Create(str(pet), pet, status) for pet, status in STATUS.items()}
    history = History({create.name: create for create in creates.values()})
    values = {pet: create.members() | {"id": pet} for pet, create in creates.items()}
    moments = [(each.sent, 0, number, each) for number, each in enumerate(operations)]
    moments += [(each.received, 1, number, each) for number, each in enumerate(operations) if each.received < math.inf]
    violations = []
    for _, ends, _, each in sorted(moments, key=lambda moment: moment[:3]):
        if not ends:
            if each.kind in ("confirmed", "refused", "unknown"):
                history.attempt(creates[each.pet], each.sent)
            continue
        times, page = (each.sent, each.received), [values[pet] for pet in each.sees]
        match each.kind:
            case "confirmed":
                violations += history.confirm(values[each.pet], *times)
            case "refused":
                violations += history.refuse(creates[each.pet], *times)
            case "get":
                violations += history.read(each.pet, page[0] if page else None, *times)
            case "page":
                violations += history.page(page, each.pet, each.last, each.status, *times)
    return not violations


def register_of(pet: int, operations: list[Operation]) -> list[tuple[str, int, float]]:
    """The operations of one pet: confirmed and unknown attempts, and reads that see it or miss it."""
    found = []
    for each in operations:
        if each.kind in ("confirmed", "unknown") and each.pet == pet:
            found.append((each.kind, each.sent, each.received))
        elif each.kind == "get" and each.pet == pet:
            found.append(("sees" if each.sees else "misses", each.sent, each.received))
        elif each.kind == "page" and each.pet < pet and each.status in (None, STATUS[pet]):
            if pet in each.sees:
                found.append(("sees", each.sent, each.received))
            elif each.last or pet < max(each.sees, default=0):
                found.append(("misses", each.sent, each.received))
    return found


def is_linearizable(remaining: list[tuple[str, int, float]], present: bool = False) -> bool:
    """Searches for an order in which each operation is explained by those before it."""
    if all(kind == "unknown" for kind, _, _ in remaining):
        return True
    first_end = min(received for _, _, received in remaining)
    for index, (kind, sent, _) in enumerate(remaining):
        # No other operation ended before this one began.
        if sent <= first_end and (kind in ("confirmed", "unknown") or present == (kind == "sees")):
            others = remaining[:index] + remaining[index + 1:]
            if is_linearizable(others, present or kind in ("confirmed", "unknown")):
                return True
    return False


class Search(unittest.TestCase):
    def test_the_rule_agrees_with_a_search_for_an_order(self) -> None:
        rng = random.Random(1)
        verdicts = {True: 0, False: 0}
        for number in range(4000):
            effects = {pet: rng.choice((rng.uniform(0, 12), math.inf)) for pet in STATUS} if number % 2 else None
            operations = [random_operation(rng, effects) for _ in range(rng.randint(2, 9))]
            verdict = all(is_linearizable(register_of(pet, operations)) for pet in STATUS)
            self.assertEqual(verdict, checked(operations), operations)
            verdicts[verdict] += 1
        self.assertGreater(min(verdicts.values()), 500, verdicts)
