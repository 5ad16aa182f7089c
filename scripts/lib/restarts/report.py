"""The report of a run, in Markdown."""

import time

from restarts.results import Results
from soak.report import table


def report(results: list[Results], version: str, connections: int) -> str:
    sections = [f"## {time.strftime('%Y-%m-%d')}: {connections} connections, {version}"]
    found = [f"{each.title}: {problem}" for each in results for problem in each.problems()]
    sections.append("**All checks held.**" if not found else "**Checks failed:**\n\n" + bullets(found))
    heads = ("", *(each.title for each in results))
    rows = [(name, *(value(each) for each in results)) for name, value in ROWS]
    sections.append(table(heads, rows, "|".join(["-", *("-:" for _ in results)])))
    if examples := [f"{each.title}: {example}" for each in results for example in each.load.examples]:
        sections.append("Examples of failed requests:\n\n" + bullets(examples))
    return "\n\n".join(sections) + "\n"


ROWS = (
    ("restarts", lambda each: each.restarts),
    ("seconds", lambda each: f"{each.seconds:.0f}"),
    ("requests", lambda each: f"{each.load.requests.total():,}"),
    ("creates without a key", lambda each: f"{each.load.requests['create']:,}"),
    ("creates with an `Idempotency-Key`", lambda each: f"{each.load.requests['create with key']:,}"),
    ("of these, sent again after the 201", lambda each: f"{each.load.requests['replay']:,}"),
    ("lists", lambda each: f"{each.load.requests['list']:,}"),
    ("failed requests", lambda each: f"{each.failed:,}"),
    ("longest wait for a response, in ms", lambda each: f"{each.load.longest_wait * 1000:,.0f}"),
    ("responses with `Connection: close` to the clients", lambda each: f"{each.load.closes:,}"),
    ("pets with a 201", lambda each: f"{len(each.load.ledger.acknowledged[None]):,}"),
    ("pets on all pages", lambda each: f"{each.stored:,}"),
    ("lost", lambda each: f"{len(each.comparison.lost):,}"),
    ("stored twice", lambda each: f"{len(each.comparison.doubled):,}"),
)


def bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
