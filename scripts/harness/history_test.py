"""Tests of history.py. To run them: PYTHONPATH=scripts python3 -B -m unittest harness.history_test"""

import math
import random
import unittest
from collections.abc import Callable

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


STATUS = {1: None, 2: "sold", 3: "sold"}


class RandomHistory:
    """Random operations on three pets: as calls of a history, and for each pet as operations on a register. With
    effects, the times at which the pets are created, the reads return what the pets are then."""

    def __init__(self, rng: random.Random, effects: dict[int, float] | None):
        self.rng, self.effects = rng, effects
        self.creates = {pet: Create(str(pet), pet, status) for pet, status in STATUS.items()}
        self.values = {pet: create.members() | {"id": pet} for pet, create in self.creates.items()}
        self.history = History({create.name: create for create in self.creates.values()})
        self.calls: list[tuple[int, bool, Callable]] = []  # the times, whether an operation ends, and the calls
        self.registers: dict[int, list[tuple[str, int, float]]] = {pet: [] for pet in STATUS}
        for _ in range(rng.randint(2, 9)):
            sent = rng.randrange(12)
            rng.choice((self.attempt, self.page, self.get))(sent, rng.randrange(sent, 13))

    def attempt(self, sent: int, received: int) -> None:
        pet, outcome = self.any_pet(), self.rng.choice(("confirmed", "refused", "unknown"))
        if self.effects and outcome == "confirmed" and self.effects[pet] > received:
            outcome = "unknown"
        create, history = self.creates[pet], self.history
        self.calls.append((sent, False, lambda: history.attempt(create, sent)))
        if outcome == "confirmed":
            self.calls.append((received, True, lambda: history.confirm(self.values[pet], sent, received)))
        if outcome == "refused":
            self.calls.append((received, True, lambda: history.refuse(create, sent, received)))
        else:
            self.registers[pet].append((outcome, sent, received if outcome == "confirmed" else math.inf))

    def get(self, sent: int, received: int) -> None:
        pet = self.any_pet()
        seen = self.values[pet] if self.is_seen(pet, sent, received) else None
        self.calls.append((received, True, lambda: self.history.read(pet, seen, sent, received)))
        self.registers[pet].append(("sees" if seen else "misses", sent, received))

    def page(self, sent: int, received: int) -> None:
        after, status, limit = self.rng.randrange(3), self.rng.choice((None, "sold")), self.rng.randint(1, 3)
        pets = [pet for pet in STATUS if pet > after and status in (None, STATUS[pet])]
        seen = [pet for pet in pets if self.is_seen(pet, sent, received)]
        page, last = [self.values[pet] for pet in seen[:limit]], len(seen) <= limit
        self.calls.append((received, True, lambda: self.history.page(page, after, last, status, sent, received)))
        for pet in pets:
            if pet in seen[:limit]:
                self.registers[pet].append(("sees", sent, received))
            elif last or pet < seen[limit - 1]:
                self.registers[pet].append(("misses", sent, received))

    def any_pet(self) -> int:
        return self.rng.choice((1, 1, 2, 3))

    def is_seen(self, pet: int, sent: int, received: int) -> bool:
        return self.rng.uniform(sent, received) >= self.effects[pet] if self.effects else self.rng.random() < 0.5

    def is_accepted(self) -> bool:
        """Makes the calls in their order, all attempts of a time before its responses."""
        calls = [call for _, _, call in sorted(self.calls, key=lambda call: call[:2])]
        return not [violation for call in calls for violation in call() or ()]


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
            case = RandomHistory(rng, effects)
            verdict = all(map(is_linearizable, case.registers.values()))
            self.assertEqual(verdict, case.is_accepted(), case.registers)
            verdicts[verdict] += 1
        self.assertGreater(min(verdicts.values()), 500, verdicts)
