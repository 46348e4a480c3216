"""Numbers as text, with as few digits as are exact enough, and equally many within a column."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

INFINITY = "∞"
MINUS = "−"  # as wide as +, unlike the hyphen


def format_numbers(values: Sequence[float], *, most: int = 2) -> list[str]:
    """Format numbers with the same number of decimals: none if all are whole, at most `most`.

    If even the largest is small, it still gets two significant digits.

    >>> format_numbers([12.5, 30.8, -math.inf])
    ['12.5', '30.8', '−∞']
    """
    finite = [abs(x) for x in values if math.isfinite(x)]
    largest = max(finite, default=0.0)
    if largest >= 1e6 or 0 < largest < 1e-3:
        return [_format_one(x, ".2e") for x in values]
    if 0 < largest < 0.1:
        most = 1 - math.floor(math.log10(largest))
    near = 1e-3 * 10**-most  # float32 stores 30.8 as 30.799999
    enough = (d for d in range(most) if all(abs(x - round(x, d)) < near for x in finite))
    digits = next(enough, most)
    return [_format_one(x, f".{digits}f") for x in values]


def format_number(value: float) -> str:
    """Format a single number.

    >>> format_number(-3.14159)
    '−3.14'
    """
    return format_numbers([value])[0]


def format_weights(weights: Sequence[float]) -> list[str]:
    """Format weights with two decimals, or three if one of them needs it; 0 means exactly 0.

    >>> format_weights([0.0638, 0.6282, 0.308])
    ['0.06', '0.63', '0.31']
    >>> format_weights([0.00001, 0.99999, 0.0])
    ['<0.001', '1.000', '0']
    """
    digits = 3 if any(0 < w < 0.01 for w in weights) else 2
    least = 0.5 * 10**-digits
    return [
        f"<{10**-digits:.{digits}f}"
        if 0 < w < least
        else _format_one(w, f".{digits}f")
        if w
        else "0"
        for w in weights
    ]


def format_brief(value: float | int) -> str:
    """Format a number of any size with three significant digits, for charts.

    >>> [format_brief(x) for x in (4096.0, 0.73051, 0.1, 0.00012, -2.5e9)]
    ['4096', '0.731', '0.1', '1.2e−4', '−2.5e9']
    """
    value = float(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else _format_one(value, "f")
    if value == 0 or (value == int(value) and abs(value) < 1e7):
        return _format_one(value, ".0f")
    if 1e-3 <= abs(value) < 1e6:
        most = max(0, 2 - math.floor(math.log10(abs(value))))
        near = 1e-9 * abs(value)  # so 0.1 becomes 0.1, and 0.1003 becomes 0.100
        digits = next((d for d in range(most) if abs(value - round(value, d)) < near), most)
        return _format_one(value, f".{digits}f")
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)


@dataclass(frozen=True, slots=True)
class Spread:
    """A number of several runs.

    >>> str(Spread(0.85, 0.8, 0.91))
    '0.85 (0.8–0.91)'
    """

    mean: float | int
    least: float | int
    most: float | int

    def __str__(self) -> str:
        mean, least, most = map(format_brief, (self.mean, self.least, self.most))
        return mean if least == most else f"{mean} ({least}–{most})"


def _format_one(value: float, form: str) -> str:
    if math.isinf(value):
        return f"{MINUS if value < 0 else ''}{INFINITY}"
    shown = format(value, form).replace("-", MINUS)
    return shown.removeprefix(MINUS) if value == 0 or not shown.strip(f"{MINUS}0.") else shown
