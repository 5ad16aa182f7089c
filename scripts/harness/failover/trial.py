"""One fail-over under load: the fault, what clients saw of it, and what they must not see."""

import asyncio
import time
from collections import Counter
from signal import SIGKILL

from harness import creators, readers
from harness.client import Client, Load, clients
from harness.failover.network import POSTGRES, REDIS, Networks
from harness.failover.stage import FailoverStage, until
from harness.history import DOUBLED, SHARED, STALE, Create
from harness.http_client import Exchange, Request
from harness.journal import RECOVERY, Fault, Journal
from harness.soak import strangers
from harness.soak.faults import KEYS, NOTHING, STORAGE

SWITCH, KILL, FREEZE, PARTITION, INSTANCE = FAULTS = "switch-over", "kill", "freeze", "partition", "kill-instance"
ABILITIES = "reads", "creates", "keys"
ISOLATED = "isolated with the old leader"
OTHERS = {  # what a fault is for one instance
    PARTITION: (ISOLATED, frozenset("A"), STORAGE | KEYS), INSTANCE: ("killed", frozenset("B"), NOTHING, "kill"),
}
UNCONFIRMED = "a pet without a 201 was shown and lost"
ACCEPTED = "status 200 instead of 401"
BEHAVIOURS = {
    creators.create_without_key: 2, creators.create_with_key: 3, creators.be_refused: 1, readers.get_pets: 3,
    readers.list_pets: 1, readers.walk: 1, strangers.revoke_keys: 2,
}
HOLD = 4.0  # seconds after a fail-over, so that the old leader returns to a changed world
RETURN_TIMEOUT = 30.0  # of all abilities, after the engine is healthy


class SplitJournal(Journal):
    """Counts apart what is wrong on an instance that is isolated with the old leader, and a pet without a 201 that this
    instance alone has shown: PostgreSQL shows what is not replicated once the wait for replication is cancelled."""

    def __init__(self, creates: dict[str, Create]):
        super().__init__()
        self.creates, self.apart = creates, Counter()

    def violate(self, rule: str, exchange: Exchange | None = None, detail: str = "") -> None:
        apart = exchange and any(fault.kind == ISOLATED for fault in self.concerning(exchange))
        if rule == STALE and (create := self.creates[detail]).id is None:
            apart = apart or any(fault.kind == ISOLATED and fault.start <= create.present <= fault.end + RECOVERY
                                 for fault in self.faults)
            rule = UNCONFIRMED if apart else rule
        if apart:
            self.apart[rule] += 1
        else:
            super().violate(rule, exchange, detail)

    def clear(self) -> None:
        for each in (self.broken, self.apart, self.examples):
            each.clear()


class Probe:
    """A client that uses one ability of one instance, and measures for how long it fails."""

    def __init__(self, ability: str, instance: str):
        self.ability, self.instance, self.seconds = ability, instance, 0.0
        self.failing_since: float | None = time.monotonic()

    async def run(self, client: Client) -> None:
        while client.load.running:
            began, succeeds = time.monotonic(), await self.succeeds(client)
            if not succeeds:
                self.failing_since = self.failing_since or began
            elif self.failing_since:
                self.seconds += time.monotonic() - self.failing_since
                self.failing_since = None
            await asyncio.sleep(0.05)

    async def succeeds(self, client: Client) -> bool:
        operation = f"probe of {self.ability}"
        if self.ability == "creates":
            create = client.load.ledger.new()
            request = creators.create_request(create, client.token, operation=operation)
            return await creators.attempt(client, create, request, self.instance) is not None
        target, status, uses = ("/v1/dogs", 404, KEYS) if self.ability == "keys" else ("/v1/pets", 200, readers.USES)
        request = Request(operation, "GET", target, frozenset({status}), uses, client.token)
        return (await client.send(request, self.instance)).status == status


class Trial:
    def __init__(self, stage: FailoverStage, load: Load, networks: Networks | None, engine: str, fault: str):
        self.stage, self.load, self.networks, self.fault = stage, load, networks, fault
        self.engine, self.network, self.impairs = {
            "postgres": (stage.postgres, POSTGRES, STORAGE), "redis": (stage.redis, REDIS, KEYS)
        }[engine]
        self.probes = [Probe(ability, name) for name in stage.instances for ability in ABILITIES]
        self.wrong: list[str] = []
        stage.commands.settled = lambda: not load.journal.impaired("keys")

    async def run(self) -> dict[str, object]:
        """Returns what the report needs, as JSON."""
        load, first = self.load, len(self.load.ledger.acknowledged)
        journal = load.journal
        journal.clear()
        load.end = float("inf")
        async with clients(load, BEHAVIOURS | {probe.run: 1 for probe in self.probes}):
            seconds = await self.fail_over()
            await asyncio.sleep(RECOVERY)
        journal.settle(self.stage.stalls, frozenset(self.stage.instances))
        broken, stale = journal.broken, journal.broken[STALE]
        await readers.read_all(load)
        journal.settle()
        outages = {name: {} for name in self.stage.instances}
        for probe in self.probes:
            outages[probe.instance][probe.ability] = round(probe.seconds, 1)
        counts = {
            "acknowledged": len(load.ledger.acknowledged) - first, "lost": broken[STALE] - stale,
            "doubled": broken[DOUBLED] + broken[SHARED], "stale": stale, "accepted": broken[ACCEPTED],
        }
        counts["other"] = broken.total() - broken[STALE] - counts["doubled"] - counts["accepted"]
        wrong = self.wrong + [f"{rule}: {count}" for rule, count in broken.items() if count]
        return counts | {
            "seconds": round(seconds, 1), "outages": outages, "wrong": wrong, "apart": journal.apart,
            "stale apart": journal.apart[STALE], "accepted apart": journal.apart[ACCEPTED],
            "examples": [*journal.examples.values()],
        }

    async def fail_over(self) -> float:
        """Returns the seconds until the engine has another leader."""
        everyone, journal = frozenset(self.stage.instances), self.load.journal
        beginning = journal.begin(Fault("start", everyone, STORAGE | KEYS))
        await until(self.all_succeed)
        beginning.end = time.monotonic()
        await asyncio.sleep(RECOVERY)
        for probe in self.probes:
            probe.seconds = 0.0
        old, start = await self.engine.leader(), time.monotonic()
        other = journal.begin(Fault(*OTHERS[self.fault])) if self.fault in OTHERS else None
        fault = journal.begin(Fault(self.fault, everyone, self.impairs))
        await self.begin(old)
        await until(lambda: self.has_other_leader(old))
        seconds = time.monotonic() - start
        await asyncio.sleep(HOLD)
        await self.end(old)
        if other:
            other.end = time.monotonic()
        await until(self.engine.is_healthy)
        fault.end = time.monotonic()
        try:
            await until(self.all_succeed, RETURN_TIMEOUT)
        except TimeoutError:
            self.wrong.append(f"requests still fail {RETURN_TIMEOUT:g} s after the engine is healthy")
        return seconds

    async def has_other_leader(self, old) -> bool:
        return await self.engine.leader() not in (None, old)

    async def all_succeed(self) -> bool:
        return not any(probe.failing_since for probe in self.probes)

    async def begin(self, old) -> None:
        if self.fault == SWITCH:
            await self.engine.switch_over()
        elif self.fault == FREEZE:
            await old.freeze()
        elif self.fault == PARTITION:
            await self.networks.separate(self.network, old.name, "A")
        else:
            await old.discard()
        if self.fault == INSTANCE:
            await self.stage.instances["B"].stop(SIGKILL)

    async def end(self, old) -> None:
        if self.fault == FREEZE:
            await old.thaw()
        elif self.fault == PARTITION:
            await self.networks.join(self.network, old.name, "A")
        elif self.fault != SWITCH:
            await old.spawn()
        if self.fault == INSTANCE:
            await self.stage.instances["B"].start()
