"""Values with their units, as Grafana names them."""

SECONDS = ((1, " s"), (1e-3, " ms"), (1e-6, " µs"))
BYTES = ((1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB"), (1, " B"))
SUFFIXES = {"reqps": "/s", "ops": "/s", "cps": "/s"}


def text(value: float, unit: str) -> str:
    """The value in at most about ten characters."""
    if unit == "percentunit":
        return f"{number(value * 100)} %"
    scale = {"s": SECONDS, "bytes": BYTES, "Bps": BYTES}.get(unit)
    if not scale or not value:
        return number(value) + SUFFIXES.get(unit, "")
    factor, name = next((each for each in scale if abs(value) >= each[0]), scale[-1])
    return f"{number(value / factor)}{name}{'/s' if unit == 'Bps' else ''}"


def number(value: float) -> str:
    """Three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-3 else "0"
