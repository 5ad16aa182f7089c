"""What a run prints: the values of every panel, the alerts, the counts and the problems."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from observe import units

if TYPE_CHECKING:
    from observe.runner import Results

COLUMNS = "{:<64}{:>13}{:>13}{:>13}"


def report(results: Results) -> str:
    total = results.counts.responses.total()
    lines = [f"{total:,} requests in {results.seconds:.0f} s", "", COLUMNS.format("panel", "mean", "maximum", "last")]
    row = ""
    for panel, found in results.panels:
        if panel.row != row:
            row = panel.row
            lines += ["", f"== {row}"]
        lines.append(panel.title)
        for target, series in zip(panel.targets, found):
            for each in series:
                values = [value for _, value in each.points]
                if values:
                    shown = (units.text(value, panel.unit) for value in (fmean(values), max(values), values[-1]))
                    lines.append(COLUMNS.format(f"  {target.label(each.labels)}"[:63], *shown))
    lines += ["", "== Alerts"]
    lines += [f"  {rule['name']:<62}{rule['state']:>13}" for rule in results.alerts]
    lines += ["", "== Responses that the clients counted"]
    for (operation, method, status), number in sorted(results.counts.responses.items()):
        lines.append(f"  {operation:<12}{method:<8}{status:<8}{number:>9,}")
    lines += ["", *(f"PROBLEM: {problem}" for problem in results.problems)]
    if not results.problems:
        queries = sum(len(panel.targets) for panel, _ in results.panels)
        lines.append(
            f"scripts/observe passed: {queries} queries of {len(results.panels)} panels and {len(results.alerts)} "
            f"alerts have data, and the instances counted the same {total:,} responses as the clients"
        )
    return "\n".join(lines)
