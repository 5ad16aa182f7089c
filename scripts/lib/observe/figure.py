"""Draws the main panels of the dashboard as an SVG image without scripts, for light and dark mode."""

import math
from html import escape

from observe import units
from observe.dashboard import Panel
from observe.prometheus import Series

PANELS = ("Responses by status", "Server errors", "Latency, 99 %", "Requests in flight", "Queue wait, 99 %", "CPU")
COLUMNS = 3
WIDTH, HEIGHT = 330, 246  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 34, 168  # of its plot
HEADER = 30
LEGEND = 14  # height of a line
CHARACTER = 6.2  # width in the legend
COLORS = (
    ("#0550ae", "#79c0ff"), ("#953800", "#ffa657"), ("#116329", "#7ee787"), ("#6639ba", "#d2a8ff"),
    ("#a40e26", "#ff7b72"), ("#5c6773", "#b1bac4"), ("#0a7480", "#56d4dd"), ("#9a6700", "#e3b341"),
    ("#bf3989", "#f778ba"), ("#1f2328", "#e6edf3"), ("#4f6b00", "#b5d867"), ("#7a4a2b", "#d8a785"),
)
STYLE = """
text { font: 11px system-ui, sans-serif; fill: currentColor }
.title { font-size: 13px; font-weight: 600 }
.grid { stroke: currentColor; stroke-opacity: .18 }
.fault { stroke: currentColor; stroke-opacity: .5; stroke-dasharray: 2 3 }
.line { fill: none; stroke-width: 1.5; stroke-linejoin: round }
svg { color: #1f2328 }
.page { fill: #fff }
"""
DARK = "svg { color: #e6edf3 } .page { fill: #0d1117 }"


def draw(panels: list[tuple[Panel, list[list[Series]]]], faults: list, start: float, seconds: float) -> str:
    drawings = []
    for panel, found in panels:
        if panel.title not in PANELS:
            continue
        lines = {
            target.label(each.labels): [(time - start, value) for time, value in each.points]
            for target, series in zip(panel.targets, found)
            for each in series
            if each.points
        }
        x, y = len(drawings) % COLUMNS * WIDTH, HEADER + len(drawings) // COLUMNS * HEIGHT
        drawings.append(f'<g transform="translate({x} {y})">\n{Plot(panel, lines, seconds).svg(faults)}\n</g>')
    width, height = COLUMNS * WIDTH, HEADER + math.ceil(len(drawings) / COLUMNS) * HEIGHT
    events = "; ".join(f"{what} at {at:.0f} s" for at, what in faults)
    light, dark = ("\n".join(colors(mode)) for mode in (0, 1))
    body = "\n".join(drawings)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" \
aria-labelledby="title description">
<title id="title">Panels of the dashboard under load</title>
<desc id="description">{escape(f"Two instances for {seconds:.0f} seconds. Dashed lines: {events}.")}</desc>
<style>{STYLE}{light}
@media (prefers-color-scheme: dark) {{ {DARK}
{dark} }}</style>
<rect class="page" width="{width}" height="{height}"/>
<text x="12" y="20">Dashed lines: {escape(events)}</text>
{body}
</svg>
"""


def colors(mode: int) -> list[str]:
    return [
        f".line.s{index} {{ stroke: {color[mode]} }} .dot.s{index} {{ fill: {color[mode]} }}"
        for index, color in enumerate(COLORS)
    ]


class Plot:
    """One panel: its lines by their legends, as seconds and values."""

    def __init__(self, panel: Panel, lines: dict[str, list[tuple[float, float]]], seconds: float):
        self.panel, self.lines, self.seconds = panel, lines, seconds
        largest = max((value for points in lines.values() for _, value in points), default=0) or 1
        power = 10 ** math.floor(math.log10(largest / 4))
        self.tick = next(factor * power for factor in (1, 2, 2.5, 5, 10) if largest / (factor * power) <= 4)
        self.top = math.ceil(largest / self.tick - 1e-9) * self.tick

    def svg(self, faults: list) -> str:
        parts = [f'<text class="title" x="12" y="{TOP - 14}">{escape(self.panel.title)}</text>']
        for number in range(round(self.top / self.tick) + 1):
            value = number * self.tick
            parts.append(f'<path class="grid" d="M{LEFT} {self.y(value):.1f}H{WIDTH - RIGHT}"/>')
            label = units.text(value, self.panel.unit)
            parts.append(f'<text x="{LEFT - 6}" y="{self.y(value) + 4:.1f}" text-anchor="end">{label}</text>')
        step = next(step for step in (1, 2, 5, 10, 15, 30, 60, 300) if self.seconds / step < 6)
        for at in range(0, math.ceil(self.seconds), step):
            parts.append(f'<text x="{self.x(at):.1f}" y="{BOTTOM + 16}" text-anchor="middle">{at} s</text>')
        parts += [f'<path class="fault" d="M{self.x(at):.1f} {TOP}V{BOTTOM}"/>' for at, _ in faults]
        column = 24 + CHARACTER * max(map(len, self.lines), default=0)
        columns = max(1, int((WIDTH - 12) / column))
        for index, (legend, points) in enumerate(self.lines.items()):
            line = " ".join(f"{self.x(at):.1f},{self.y(value):.1f}" for at, value in points)
            color = index % len(COLORS)
            parts.append(f'<polyline class="line s{color}" points="{line}"/>')
            x, y = 12 + index % columns * column, BOTTOM + 34 + index // columns * LEGEND
            parts.append(f'<circle class="dot s{color}" cx="{x + 4:.0f}" cy="{y - 4}" r="4"/>')
            parts.append(f'<text x="{x + 12:.0f}" y="{y}">{escape(legend)}</text>')
        return "\n".join(parts)

    def x(self, at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at / self.seconds

    def y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / self.top
