"""The tables of the trials."""

from harness.failover.patroni import TIMES
from harness.failover.sentinel import DOWN_AFTER
from harness.failover.trial import ABILITIES, FAULTS, INSTANCE, PARTITION
from harness.report import bullets, table

CHECKS = {
    "acknowledged": "creates acknowledged", "lost": "lost", "doubled": "doubled", "stale": "stale reads",
    "accepted": "revoked key accepted", "other": "other violations",
}
APART = {"stale apart": "stale reads", "accepted apart": "revoked key accepted"}


def report(results: dict[str, dict]) -> str:
    groups: dict[tuple[str, str], list[dict]] = {}
    for name, result in results.items():
        route, _, rest = name.partition("-")
        groups.setdefault((route, rest.rpartition("-")[0]), []).append(result)
    ordered = sorted(groups.items(), key=lambda group: (group[0][0], FAULTS.index(group[0][1])))
    connected, isolated = [], []
    for (route, fault), rounds in ordered:
        instances = {PARTITION: "B", INSTANCE: "A"}.get(fault, "AB")
        checks = [sum(result[key] for result in rounds) for key in CHECKS]
        connected.append((route, fault, len(rounds), *seconds(rounds, instances), *checks))
        if fault == PARTITION:
            apart = [sum(result[key] for result in rounds) for key in APART]
            isolated.append((route, len(rounds), *seconds(rounds, "A"), *apart))
    times = ", ".join(f"`{name}` {value} s" for name, value in TIMES.items())
    sections = [f"Patroni: {times}. Sentinel: `down-after-milliseconds` {DOWN_AFTER}."]
    heads = "new leader after, s", *(f"{ability} 503, s" for ability in ABILITIES)
    sections.append(table(("route", "fault", "rounds", *heads, *CHECKS.values()), connected, texts=2))
    if isolated:
        sections.append("The instance that is isolated with the old primary or master, counted apart:")
        sections.append(table(("route", "rounds", *heads, *APART.values()), isolated))
    wrong = [f"{name}: {problem}" for name, result in results.items() for problem in result["wrong"]]
    sections.append("**Checks failed:**\n\n" + bullets(wrong) if wrong else "**All checks held.**")
    return "\n\n".join(sections) + "\n"


def seconds(rounds: list[dict], instances: str) -> list[str]:
    """The least and the most, over rounds and instances, of the fail-over and of each ability's outage."""
    columns = [[result["seconds"] for result in rounds]]
    for ability in ABILITIES:
        columns.append([result["outages"][name][ability] for result in rounds for name in instances])
    return [f"{min(column):g}–{max(column):g}" if max(column) > min(column) else f"{max(column):g}" for column in columns]
