"""The report of a run, in Markdown."""

import time
from collections import Counter, defaultdict

from harness.timeline import Fault
from harness.tool import bullets, table, verdict
from soak.runner import Results


def report(results: Results, seed: int, version: str) -> str:
    sections = [
        f"## {time.strftime('%Y-%m-%d')}: {results.seconds / 60:g} min, seed {seed}, {version}",
        verdict(results.problems()), totals(results), fault_table(results), request_table(results),
        f"Instance A: medians of the first and the last quarter of {results.trend.count:,} samples without faults.",
        table(("", "early", "late"), results.trend.rows()),
    ]
    if examples := results.load.journal.examples:
        sections.append("Examples of violations:\n\n" + bullets(list(examples.values()) + results.logs.lines))
    return "\n\n".join(sections) + "\n"


def totals(results: Results) -> str:
    load, comparison, history = results.load, results.comparison, results.load.history
    creates = load.ledger.creates.values()
    rows = [
        ("requests", load.journal.requests), ("pets acknowledged", len(load.ledger.acknowledged)),
        ("of these, lost", len(comparison.lost)), ("stored twice", len(comparison.doubled)),
        ("stored with other values", len(comparison.altered)), ("stored although refused", len(comparison.refused)),
        ("stored but never sent", len(comparison.unknown)),
        ("creates with an unknown outcome", comparison.unresolved), ("of these, stored", comparison.resolved),
        ("creates with an `Idempotency-Key`", sum(create.key is not None for create in creates)),
        ("rows in the table", results.rows), ("walks over all pages", load.walks),
        ("operations in the histories", history.operations), ("pets with a history", len(history.pets)),
        ("creates that are open to the end", history.open_creates),
        ("operations that contradict their history", history.violations),
        ("wrong responses and lost requests", load.journal.broken.total()),
        ("longest acceptance of a revoked key after `keys revoke`, in ms", round(load.longest_acceptance * 1000)),
        ("responses with `Connection: close`", load.journal.closes), ("log lines dropped", results.logs.dropped),
    ]
    return table(("", "number"), [(name, f"{value:,}") for name, value in rows])


def fault_table(results: Results) -> str:
    kinds: dict[str, list[Fault]] = defaultdict(list)
    for fault in results.load.timeline.faults:
        kinds[fault.kind].append(fault)
    rows = []
    for kind, faults in sorted(kinds.items()):
        seen: Counter = sum((fault.seen for fault in faults), Counter())
        share = f"{seen['good'] / seen.total():.0%}" if seen else "–"
        length = sum(fault.end - fault.start for fault in faults)
        last = max(fault.last_bad for fault in faults) * 1000
        rows.append((kind, outcomes(seen), len(faults), f"{length:.1f}", share, f"{last:,.0f}"))
    heads = ("fault", "other outcomes", "number", "seconds", "good", "last bad, ms")
    return (
        "Requests that the fault can affect, sent before its end. `good`: the response is the same as without a "
        "fault.\n`last bad`: the longest time after the end of a fault until a response that was not good.\n\n"
        + table(heads, rows, texts=2)
    )


def request_table(results: Results) -> str:
    found = sorted(results.load.journal.outcomes.items())
    rows = [(operation, outcomes(counts), f"{counts.total():,}") for operation, counts in found]
    return table(("request", "outcomes", "number"), rows, texts=2)


def outcomes(counts: Counter) -> str:
    others = (f"{outcome}: {count:,}" for outcome, count in counts.most_common() if outcome != "good")
    return ", ".join(others) or "–"
