"""The report of a load, in Markdown: what was sent, what came of it, and what is wrong."""

import time
from collections import Counter
from collections.abc import Sequence

from harness.client import Load


def report(title: str, load: Load, figures: dict[str, object], wrong: Sequence[str]) -> int:
    """Prints the figures of a load and further ones. `wrong` has each further check that did not hold. Returns the exit
    code of the program."""
    journal = load.journal
    wrong = [*(f"{rule}: {count:,}" for rule, count in journal.broken.most_common()), *wrong]
    verdict = "**Checks failed:**\n\n" + bullets(wrong) if wrong else "**All checks held.**"
    totals = {
        "requests": sum(counts.total() for counts in journal.outcomes.values()),
        "seconds": round(load.end - journal.started),
        "pets acknowledged": len(load.ledger.acknowledged) + load.ledger.gone,
        "of these, gone with a store that was replaced": load.ledger.gone,
        "operations in the histories": load.history.operations,
        "longest wait for a response, in ms": round(journal.longest * 1000),
    }
    rows = [(name, f"{value:,}" if isinstance(value, int) else value) for name, value in (totals | figures).items()]
    sections = [f"## {time.strftime('%Y-%m-%d')}: {title}", verdict, table(("", "number"), rows)]
    if kinds := Counter(fault.kind for fault in journal.faults):
        sections.append(table(("fault", "number"), sorted(kinds.items())))
    rows = []
    for name, counts in sorted(journal.outcomes.items()):
        outcomes = ", ".join(f"{outcome}: {count:,}" for outcome, count in counts.most_common())
        rows.append((name, outcomes, f"{counts.total():,}"))
    sections.append(table(("request", "outcomes", "number"), rows, texts=2))
    if journal.examples:
        sections.append("Examples of violations:\n\n" + bullets(journal.examples.values()))
    print("\n\n".join(sections), flush=True)
    return 1 if wrong else 0


def bullets(lines) -> str:
    return "\n".join(f"- {line}" for line in lines)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], texts: int = 1) -> str:
    """A table in Markdown. The first columns, as many as `texts`, are aligned to the left."""
    rule = "|".join(["---"] * texts + ["---:"] * (len(heads) - texts))
    lines = [f"| {' | '.join(heads)} |", f"|{rule}|"]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])
