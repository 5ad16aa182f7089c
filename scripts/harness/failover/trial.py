"""One fail-over under load: the fault, what clients saw of it, and what they must not see."""

import asyncio
import time
from collections import Counter
from signal import SIGKILL

from harness import creators, readers
from harness.client import Client, Load, clients
from harness.failover.network import POSTGRES, REDIS, SIDE, Networks
from harness.failover.stage import ALONE, FAIL_OVER_TIMEOUT, SENTINEL, FailoverStage
from harness.history import DOUBLED, SHARED, STALE
from harness.http_client import Exchange, Request
from harness.journal import EVERYTHING, KEYS, NOTHING, RECOVERY, STORAGE, Fault, Journal
from harness.servers import Server, until
from harness.soak import strangers

SWITCH, KILL, FREEZE, PARTITION, INSTANCE, MODE = FAULTS = (
    "switch-over", "kill", "freeze", "partition", "kill-instance", "pool-mode"
)
ABILITIES = "reads", "creates", "keys"
BEHAVIOURS = {
    creators.create_without_key: 2, creators.create_with_key: 3, creators.be_refused: 1,
    creators.be_refused_by_the_table: 1, readers.get_pets: 3, readers.list_pets: 1, readers.walk: 1,
    strangers.revoke_keys: 2,
}
ISOLATED = "isolated with the old leader"
MISSED, ACCEPTED = "status 404 instead of 200", "status 200 instead of 401"
OUTDATED = MISSED, ACCEPTED, "status 401 instead of 200"  # what follows from an old leader
HOLD = 3.0  # seconds after a fail-over, so that the old leader returns to a changed world
RETURN_TIMEOUT = 120.0  # of all abilities, after the engine is healthy, on a machine that stalls


class SplitJournal(Journal):
    """Counts apart that an instance which is isolated with the old leader does not know of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.apart, self.missed = Counter(), set()  # rules; pets that a read did not return

    def violate(self, rule: str, exchange: Exchange | None = None, detail: str = "") -> None:
        isolated = exchange and any(fault.kind == ISOLATED for fault in self.concerning(exchange))
        if rule == STALE:
            self.missed.add(detail)
        if isolated and rule in OUTDATED:
            self.apart[rule] += 1
        else:
            super().violate(rule, exchange, detail)


class Probe:
    """A client that uses one ability of one instance, and measures for how long it fails."""

    def __init__(self, ability: str, instance: str):
        self.ability, self.instance, self.seconds = ability, instance, 0.0
        self.failed, self.last = False, 0.0  # the time of the last success

    async def run(self, client: Client) -> None:
        while client.load.running:
            succeeds, now = await self.succeeds(client), time.monotonic()
            if succeeds:
                self.seconds += now - self.last if self.failed else 0
                self.last = now
            self.failed = not succeeds
            await asyncio.sleep(0.05)

    async def succeeds(self, client: Client) -> bool:
        operation, ledger = f"probe of {self.ability}", client.load.ledger
        if self.ability == "creates":
            create = ledger.new()
            request = creators.create_request(create, client.token, operation=operation)
            return await creators.attempt(client, create, request, self.instance) is not None
        target, status, uses = "/v1/dogs", 404, KEYS
        if self.ability == "reads":
            target, status, uses = "/v1/pets", 200, readers.USES
            target += f"/{ledger.acknowledged[-1].id}" if ledger.acknowledged else ""
        request = Request(operation, "GET", target, frozenset({status}), uses, client.token)
        return (await client.send(request, self.instance)).status in (200, 404)


class Trial:
    def __init__(self, stage: FailoverStage, load: Load, networks: Networks, fault: str):
        self.stage, self.load, self.networks, self.fault = stage, load, networks, fault
        self.everyone = frozenset(stage.instances)
        self.engine, self.network, self.impairs = stage.postgres, POSTGRES, STORAGE
        if stage.route == SENTINEL:
            self.engine, self.network, self.impairs = stage.redis, REDIS, KEYS
        if stage.route == ALONE:
            self.impairs = EVERYTHING
        self.probes = [Probe(ability, name) for name in stage.instances for ability in ABILITIES]
        self.journal = load.journal = SplitJournal()
        load.end, load.revocations = float("inf"), 0
        stage.commands.settled = lambda: not self.journal.impaired("keys")

    async def run(self) -> dict[str, object]:
        """Returns what the report needs, as JSON."""
        load, broken = self.load, self.journal.broken
        first = len(load.ledger.acknowledged)
        async with clients(load, BEHAVIOURS | {probe.run: 1 for probe in self.probes}):
            seconds = await self.fail_over()
            await asyncio.sleep(RECOVERY)
        self.journal.settle(self.stage.stalls, self.everyone)
        stale = broken[STALE]
        self.journal.missed.clear()
        await readers.read_all(load)
        self.journal.settle()
        outages = {name: {} for name in self.stage.instances}
        for probe in self.probes:
            outages[probe.instance][probe.ability] = round(probe.seconds, 1)
        counts = {
            "acknowledged": len(load.ledger.acknowledged) - first, "lost": len(self.journal.missed),
            "doubled": broken[DOUBLED] + broken[SHARED], "stale": stale + broken[MISSED],
            "revocations": load.revocations, "accepted": broken[ACCEPTED],
        }
        counts["other"] = broken.total() - sum(broken[rule] for rule in (STALE, DOUBLED, SHARED, MISSED, ACCEPTED))
        wrong = [f"{rule}: {count}" for rule, count in broken.items() if count]
        return counts | {
            "seconds": round(seconds, 1), "outages": outages, "examples": [*self.journal.examples.values()],
            "apart": {"stale": self.journal.apart[MISSED], "accepted": self.journal.apart[ACCEPTED]},
            "wrong": wrong if load.revocations else [*wrong, "no revocation was judged"],
        }

    async def fail_over(self) -> float:
        """Returns the seconds until the engine has another leader."""
        await self.begin_measurement()
        old = await self.engine.leader()

        async def has_other_leader() -> bool:
            return await self.engine.leader() not in (None, old)

        began = time.monotonic()
        parts = [self.journal.begin(part) for part in self.parts()]
        fault = self.journal.begin(Fault(self.fault, self.everyone, self.impairs))
        await self.begin_fault(old)
        await until(has_other_leader, FAIL_OVER_TIMEOUT)
        seconds = time.monotonic() - began
        await asyncio.sleep(HOLD)
        await self.end_fault(old)
        for part in parts:
            part.end = time.monotonic()
        await until(self.engine.is_healthy, FAIL_OVER_TIMEOUT)
        fault.end = time.monotonic()
        self.load.avoided = frozenset()
        await self.all_succeed(fault.end)
        return seconds

    async def begin_measurement(self) -> None:
        start = self.journal.begin(Fault("start", self.everyone, EVERYTHING))
        await self.all_succeed(start.start)
        start.end = time.monotonic()
        # What PostgreSQL has not replicated is shown on the isolated side, once the wait for replicas is cancelled.
        self.load.avoided = frozenset("A" if self.fault == PARTITION else "")
        await asyncio.sleep(RECOVERY)
        for probe in self.probes:
            probe.seconds = 0.0

    def parts(self) -> list[Fault]:
        """What the fault does to one instance alone."""
        if self.fault == PARTITION:
            return [Fault(ISOLATED, frozenset("A"), self.impairs)]
        if self.fault == INSTANCE:
            return [Fault("killed", frozenset("B"), NOTHING, "kill")]
        return []

    async def begin_fault(self, old: Server) -> None:
        if self.fault == SWITCH:
            await self.engine.switch_over()
        elif self.fault == MODE:
            await self.use_mode("session")
            await self.engine.switch_over()
        elif self.fault == FREEZE:
            await old.freeze()
        elif self.fault == PARTITION:
            await self.networks.move(self.network, SIDE, old.name, "A")
        else:
            await old.discard()
        if self.fault == INSTANCE:
            await self.stage.instances["B"].stop(SIGKILL)

    async def end_fault(self, old: Server) -> None:
        if self.fault == MODE:
            await self.use_mode("transaction")
        elif self.fault == FREEZE:
            await old.thaw()
        elif self.fault == PARTITION:
            await self.networks.move(self.network, self.network, old.name, "A")
        elif self.fault in (KILL, INSTANCE):
            await old.spawn()
        if self.fault == INSTANCE:
            await self.stage.instances["B"].start()

    async def use_mode(self, mode: str) -> None:
        for pooler in self.stage.poolers:
            await pooler.use_mode(mode)

    async def all_succeed(self, since: float) -> None:
        """Waits until each probe has succeeded after this time."""

        async def have_succeeded() -> bool:
            return all(not probe.failed and probe.last > since for probe in self.probes)

        await until(have_succeeded, RETURN_TIMEOUT)
