"""The report of a run, in Markdown."""

import time
from collections import Counter, defaultdict
from statistics import median, quantiles

from soak.runner import Results
from soak.timeline import FaultRecord


def problems(results: Results) -> list[str]:
    """Every check that did not hold."""
    comparison, journal = results.comparison, results.load.journal
    found = [f"{rule}: {count:,}" for rule, count in journal.broken.most_common()]
    for name in ("lost", "doubled", "altered", "refused", "unknown"):
        if names := getattr(comparison, name):
            found.append(f"{len(names):,} pets {name}, for example {names[:3]}")
    found += results.trend.problems() + results.failures
    if results.logs.panics:
        found.append(f"{len(results.logs.panics):,} panics in the logs, for example {results.logs.panics[0]}")
    return found


def report(results: Results, seed: int, version: str) -> str:
    found = problems(results)
    sections = [
        f"## {time.strftime('%Y-%m-%d')}: {results.seconds / 60:g} min, seed {seed}, {version}",
        "**All checks held.**" if not found else "**Checks failed:**\n\n" + "\n".join(f"- {each}" for each in found),
        totals(results), fault_table(results), request_table(results), resource_table(results),
    ]
    if results.load.journal.examples:
        sections.append(examples(results))
    return "\n\n".join(sections) + "\n"


def totals(results: Results) -> str:
    load, comparison, history = results.load, results.comparison, results.load.history
    creates = load.ledger.creates.values()
    wrong = load.journal.broken.total()
    rows = [
        ("requests", load.journal.requests), ("pets acknowledged", len(load.ledger.acknowledged[None])),
        ("of these, lost", len(comparison.lost)), ("stored twice", len(comparison.doubled)),
        ("stored with other values", len(comparison.altered)), ("stored although refused", len(comparison.refused)),
        ("stored but never sent", len(comparison.unknown)),
        ("creates with an unknown outcome", comparison.unresolved), ("of these, stored", comparison.resolved),
        ("creates with an `Idempotency-Key`", sum(create.key is not None for create in creates)),
        ("rows in the table", results.rows), ("walks over all pages", load.walks),
        ("operations in the histories", history.operations), ("pets with a history", len(history.pets)),
        ("creates that are open to the end", history.open_creates),
        ("operations that contradict their history", history.violations),
        ("wrong responses and lost requests", wrong),
        ("longest acceptance of a revoked key after `keys revoke`, in ms", round(load.longest_acceptance * 1000)),
        ("responses with `Connection: close` at graceful stops", load.journal.announced_closes),
        ("log lines dropped", results.logs.dropped),
    ]
    return table(("", "number"), [(name, f"{value:,}") for name, value in rows], "-|-:") + (
        "\n\nThe clients used {:.0%} of the CPUs, with the proxies and the servers {:.0%}; everything together used "
        "{:.0%}.".format(*results.cpu_usage)
    )


def fault_table(results: Results) -> str:
    kinds: dict[str, list[FaultRecord]] = defaultdict(list)
    for fault in results.load.timeline.real_faults:
        kinds[fault.kind].append(fault)
    rows = []
    for kind, faults in sorted(kinds.items()):
        seen: Counter = sum((fault.seen for fault in faults), Counter())
        others = ", ".join(f"{outcome}: {count:,}" for outcome, count in seen.most_common() if outcome != "good")
        share = f"{seen['good'] / seen.total():.0%}" if seen else "–"
        good = [fault.first_good for fault in faults if fault.first_good is not None]
        bad = [fault.last_bad for fault in faults]
        length = sum(fault.end - fault.start for fault in faults)
        rows.append((kind, str(len(faults)), f"{length:.1f}", share, others or "–", milliseconds(good, median),
                     milliseconds(good, max), milliseconds(bad, median), milliseconds(bad, max)))
    heads = ("fault", "number", "seconds", "good", "other outcomes", "first good p50", "max", "last bad p50", "max")
    return (
        "Requests that the fault can affect, sent before its end. `good`: the response is the same as without a "
        "fault.\nRecovery, in ms after the end of the fault: until the first good response to a new request, and until "
        "the last\nresponse that was not good.\n\n" + table(heads, rows, "-|-:|-:|-:|-|-:|-:|-:|-:")
    )


def request_table(results: Results) -> str:
    journal, rows = results.load.journal, []
    for operation, statuses in sorted(journal.statuses.items()):
        latencies = sorted(journal.latencies[operation])
        cuts = quantiles(latencies, n=100) if len(latencies) > 1 else [0.0] * 99
        outcomes = ", ".join(f"{outcome}: {count:,}" for outcome, count in statuses.most_common())
        rows.append((operation, f"{statuses.total():,}", outcomes, f"{cuts[49] * 1000:.1f}", f"{cuts[98] * 1000:.1f}"))
    heads = ("request", "number", "outcomes", "in health: p50 ms", "p99 ms")
    return table(heads, rows, "-|-:|-|-:|-:")


def resource_table(results: Results) -> str:
    trend = results.trend
    rows = [
        ("RssAnon, MiB", *(f"{value:.1f}" for value in trend.memory)),
        ("VmRSS, MiB", *(f"{value:.1f}" for value in trend.resident)),
        ("descriptors", *(f"{value:.0f}" for value in trend.descriptors)),
        ("descriptors without clients, before and after the load", *map(str, trend.idle_descriptors)),
    ]
    introduction = (
        f"Instance A, which is never restarted: medians of the first and the last quarter of {trend.count:,} samples "
        "without faults."
    )
    return introduction + "\n\n" + table(("", "early", "late"), rows, "-|-:|-:")


def examples(results: Results) -> str:
    lines = []
    for each in results.load.journal.examples:
        lines.append(
            f"- {each.rule}: {each.operation} on {each.instance or '–'} at {each.seconds:.1f} s, latest fault: "
            f"{each.fault}, request id {each.request_id or '–'}"
        )
        if line := results.logs.lines.get(each.request_id):
            lines.append(f"  `{line}`")
    return "Examples of violations:\n\n" + "\n".join(lines)


def milliseconds(seconds: list[float], of) -> str:
    return f"{of(seconds) * 1000:,.0f}" if seconds else "–"


def table(heads: tuple, rows: list[tuple], alignment: str) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{alignment.replace('-', '---').replace('---:', '---:')}|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
