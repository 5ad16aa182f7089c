"""Tests of history.py. To run them: PYTHONPATH=scripts/lib python3 -B -m unittest harness.history_test"""

import math
import random
import unittest
from dataclasses import dataclass

from harness.history import ALTERED, DOUBLED, SHARED, STALE, UNSENT, History, Violation
from harness.ledger import Create


class Explicit(unittest.TestCase):
    """Histories of two pets. The numbers are times."""

    def setUp(self) -> None:
        self.rex, self.luna = Create("Rex", 1, None), Create("Luna", 2, "sold")
        self.history = History({create.name: create for create in (self.rex, self.luna)})

    def pet(self, create: Create, identity: int, **others) -> dict:
        return create.members() | {"id": identity} | others

    def create_rex(self, sent: float = 1, received: float = 2) -> list[Violation]:
        self.history.attempt(self.rex, sent)
        return self.history.confirm(self.pet(self.rex, 1), sent, received)

    def see_rex(self, sent: float, received: float) -> list[Violation]:
        return self.history.read(1, self.pet(self.rex, 1), sent, received)

    def assert_violates(self, rule: str, found: list[Violation]) -> None:
        self.assertEqual([rule], [each for each, _ in found])

    def test_a_read_after_the_201_must_see_the_pet(self) -> None:
        self.assertEqual([], self.create_rex())
        self.assert_violates(STALE, self.history.read(1, None, 3, 4))
        self.assert_violates(STALE, self.history.page([], 0, True, None, 5, 6))

    def test_a_refused_attempt_does_not_explain_a_pet(self) -> None:
        self.history.attempt(self.rex, 1)
        self.assertEqual([], self.see_rex(2, 3))
        self.history.attempt(self.rex, 4)
        self.assertEqual([], self.history.confirm(self.pet(self.rex, 1), 4, 5))
        self.assert_violates(UNSENT, self.history.refuse(self.rex, 1, 6))

    def test_an_open_create_can_take_effect_late_or_never(self) -> None:
        self.history.attempt(self.rex, 1)
        self.assertEqual([], self.history.page([], 0, True, None, 900, 901))
        self.assertEqual(1, self.history.open_creates)
        self.assertEqual([], self.see_rex(1000, 1001))

    def test_a_create_with_two_ids_is_refused(self) -> None:
        self.create_rex()
        both = [self.pet(self.rex, 1), self.pet(self.rex, 2)]
        self.assert_violates(DOUBLED, self.history.page(both, 0, True, None, 3, 4))

    def test_an_id_of_two_pets_is_refused(self) -> None:
        self.create_rex()
        self.history.attempt(self.luna, 3)
        self.assert_violates(SHARED, self.history.read(1, self.pet(self.luna, 1), 4, 5))

    def test_a_read_that_returns_another_id_is_refused(self) -> None:
        self.create_rex()
        self.assert_violates(SHARED, self.history.read(7, self.pet(self.rex, 1), 4, 5))

    def test_other_values_are_refused(self) -> None:
        self.create_rex()
        for pet in (self.pet(self.rex, 1, categoryId=2), self.pet(self.rex, 1, status="sold")):
            self.assert_violates(ALTERED, self.history.read(1, pet, 3, 4))

    def test_a_pet_that_was_never_sent_is_refused(self) -> None:
        self.assert_violates(ALTERED, self.history.read(1, {"id": 1, "name": "Max", "categoryId": 1}, 1, 2))

    def test_a_page_reads_only_the_pets_of_its_range_and_status(self) -> None:
        self.create_rex()
        self.history.attempt(self.luna, 3)
        luna = self.pet(self.luna, 2)
        self.history.confirm(luna, 3, 4)
        self.assertEqual([], self.history.page([luna], 1, True, None, 5, 6))
        self.assertEqual([], self.history.page([luna], 0, True, "sold", 5, 6))
        self.assertEqual([], self.history.page([self.pet(self.rex, 1)], 0, False, None, 5, 6))
        self.assert_violates(STALE, self.history.page([self.pet(self.rex, 1)], 0, True, None, 5, 6))
        self.assert_violates(STALE, self.history.page([luna], 0, False, None, 5, 6))
        self.assert_violates(STALE, self.history.page([], 1, True, "sold", 5, 6))

    def test_responses_out_of_order_are_an_error(self) -> None:
        self.create_rex()
        with self.assertRaises(AssertionError):
            self.see_rex(0, 1)

    def test_memory_is_that_of_the_pets(self) -> None:
        for time in range(2, 1000, 2):
            self.create_rex(time, time + 1)
            self.see_rex(time, time + 1)
        self.assertEqual(({}, [1]), (self.history.attempts, self.history.ids[None]))


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
    for _, ends, _, each in sorted(moments, key=lambda moment: moment[:3]):
        if not ends:
            if each.kind in ("confirmed", "refused", "unknown"):
                history.attempt(creates[each.pet], each.sent)
            continue
        match each.kind:
            case "confirmed":
                history.confirm(values[each.pet], each.sent, each.received)
            case "refused":
                history.refuse(creates[each.pet], each.sent, each.received)
            case "get":
                history.read(each.pet, values[each.pet] if each.sees else None, each.sent, each.received)
            case "page":
                page = [values[pet] for pet in each.sees]
                history.page(page, each.pet, each.last, each.status, each.sent, each.received)
    return history.violations == 0


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
