"""One fail-over under load: the fault, what clients saw of it, and what they must not see."""

import asyncio
import time
from collections import Counter
from signal import SIGKILL

from harness import creators, readers
from harness.client import Client, Load, clients
from harness.failover.network import Networks
from harness.failover.stage import FailoverStage, until
from harness.history import DOUBLED, SHARED, STALE
from harness.http_client import Exchange, Request
from harness.journal import RECOVERY, Fault, Journal
from harness.soak import strangers
from harness.soak.faults import KEYS, NOTHING, STORAGE
from harness.soak.watch import watch_readiness

SWITCH, KILL, FREEZE, PARTITION, INSTANCE = "switch-over", "kill", "freeze", "partition", "kill-instance"
FAULTS = (SWITCH, KILL, FREEZE, PARTITION, INSTANCE)
ABILITIES = "reads", "creates", "keys"
ISOLATED = "isolated with an old primary or master"
ACCEPTED = "status 200 instead of 401"
BEHAVIOURS = {
    creators.create_without_key: 2, creators.create_with_key: 3, creators.be_refused: 1, readers.get_pets: 3,
    readers.list_pets: 1, readers.walk: 1, strangers.revoke_keys: 2,
}
# Seconds of load before a fault, and of a fault after the fail-over, so that the old leader returns to a changed world.
LEAD, HOLD = 3.0, 4.0
RETURN_TIMEOUT = 30.0  # of each ability, after the engine is healthy


class SplitJournal(Journal):
    """Counts apart what is wrong on an instance that is isolated with the old leader."""

    def __init__(self) -> None:
        super().__init__()
        self.apart: Counter = Counter()

    def violate(self, rule: str, exchange: Exchange | None = None, detail: str = "") -> None:
        if exchange and any(fault.kind == ISOLATED for fault in self.concerning(exchange)):
            self.apart[rule] += 1
        else:
            super().violate(rule, exchange, detail)


class Probe:
    """A client that uses one ability of one instance, and measures for how long it fails."""

    def __init__(self, ability: str, instance: str):
        self.ability, self.instance = ability, instance
        self.seconds = 0.0
        self.failing_since: float | None = None

    async def run(self, client: Client) -> None:
        while client.load.running:
            began = time.monotonic()
            if await self.succeeds(client):
                self.end()
            elif self.failing_since is None:
                self.failing_since = began
            await asyncio.sleep(0.05)
        self.end()

    def end(self) -> None:
        if self.failing_since is not None:
            self.seconds += time.monotonic() - self.failing_since
            self.failing_since = None

    async def succeeds(self, client: Client) -> bool:
        if self.ability == "creates":
            create = client.load.ledger.new()
            request = creators.create_request(create, client.token, operation="probe of creates")
            return await creators.attempt(client, create, request, self.instance) is not None
        target, status = ("/v1/pets?limit=1", 200) if self.ability == "reads" else ("/v1/dogs", 404)
        uses = readers.USES if self.ability == "reads" else KEYS
        request = Request(f"probe of {self.ability}", "GET", target, frozenset({status}), uses, client.token)
        return (await client.send(request, self.instance)).status == status


class Trial:
    def __init__(self, stage: FailoverStage, load: Load, networks: Networks, engine: str, fault: str):
        self.stage, self.load, self.networks, self.fault = stage, load, networks, fault
        self.engine = stage.postgres if engine == "postgres" else stage.redis
        self.impairs = STORAGE if engine == "postgres" else KEYS
        self.probes = [Probe(ability, name) for name in stage.instances for ability in ABILITIES]
        self.wrong: list[str] = []
        stage.commands.settled = lambda: not load.journal.impaired("keys")

    async def run(self) -> dict[str, object]:
        first = len(self.load.ledger.acknowledged)
        for instance in self.stage.instances.values():
            instance.ready = False
        readiness = [asyncio.create_task(watch_readiness(each, self.load)) for each in self.stage.instances.values()]
        try:
            await until(self.are_ready)
            self.load.journal, self.load.end = SplitJournal(), float("inf")
            async with clients(self.load, BEHAVIOURS | {probe.run: 1 for probe in self.probes}):
                await asyncio.sleep(LEAD)
                seconds = await self.fail_over()
                await asyncio.sleep(RECOVERY)
        finally:
            for task in readiness:
                task.cancel()
        journal = self.load.journal
        journal.settle(self.stage.stalls, frozenset(self.stage.instances))
        stale = journal.broken[STALE]
        await readers.read_all(self.load)
        journal.settle()
        broken, apart = journal.broken, journal.apart
        counts = {
            "acknowledged": len(self.load.ledger.acknowledged) - first, "lost": broken[STALE] - stale,
            "doubled": broken[DOUBLED] + broken[SHARED], "stale": stale, "accepted": broken[ACCEPTED],
            "other": broken.total() - sum(broken[rule] for rule in (STALE, DOUBLED, SHARED, ACCEPTED)),
            "stale apart": apart[STALE], "accepted apart": apart[ACCEPTED],
        }
        outages = {name: {} for name in self.stage.instances}
        for probe in self.probes:
            outages[probe.instance][probe.ability] = round(probe.seconds, 1)
        self.wrong += [f"{rule}: {count}" for rule, count in broken.items() if count]
        return {
            "seconds": round(seconds, 1), "outages": outages, **counts, "wrong": self.wrong,
            "apart": dict(apart), "examples": list(journal.examples.values()),
        }

    async def fail_over(self) -> float:
        """Returns the seconds until the engine has another leader."""
        journal, old, start = self.load.journal, await self.engine.leader(), time.monotonic()
        killed = self.stage.instances["B"] if self.fault == INSTANCE else None
        faults = [journal.begin(Fault(self.fault, frozenset(self.stage.instances), self.impairs))]
        await self.begin(old)
        if killed:
            faults.insert(0, Fault("instance killed", frozenset("B"), NOTHING, "kill"))
            journal.faults.insert(0, faults[0])
            await killed.stop(SIGKILL)
        isolated = self.fault == PARTITION and Fault(ISOLATED, frozenset("A"), STORAGE | KEYS)
        if isolated:
            journal.faults.insert(0, isolated)
        await until(lambda: self.has_other_leader(old))
        seconds = time.monotonic() - start
        await asyncio.sleep(HOLD if self.fault != SWITCH else 0)
        await self.end(old)
        if isolated:
            isolated.end = time.monotonic()
        if killed:
            await killed.start()
        await until(self.engine.is_healthy)
        for fault in faults:
            fault.end = time.monotonic()
        try:
            await until(self.all_succeed, RETURN_TIMEOUT)
        except TimeoutError:
            failing = [f"{probe.ability} on {probe.instance}" for probe in self.probes if probe.failing_since]
            self.wrong.append(f"did not return within {RETURN_TIMEOUT:g} s: {', '.join(failing)}")
        return seconds

    async def are_ready(self) -> bool:
        return all(instance.ready for instance in self.stage.instances.values())

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
            await self.networks.separate(self.engine.network, old.name, "A")
        else:
            await old.kill()

    async def end(self, old) -> None:
        if self.fault == FREEZE:
            await old.thaw()
        elif self.fault == PARTITION:
            await self.networks.join(self.engine.network, old.name, "A")
        elif self.fault != SWITCH:
            await old.spawn()
