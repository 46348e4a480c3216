"""A chart as plain values, which a terminal, a file and a web page can all draw.

A chart is a row of panels. `Lines` have numbers on both axes, `Bars` a name for each number,
`Cells` a number for each row and column. Nothing here depends on how it is drawn.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Number = float | int
Values = tuple[Number | None, ...]  # None where nothing was measured


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The label of an axis, its scale (linear or logarithmic) and its limits."""

    label: str
    log: bool = False
    least: Number | None = None  # limits; None: those of the numbers
    most: Number | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """A name and its numbers, one for each place of the panel.

    Numbers that are means of several runs have the least and the most of them beside: low and high.
    """

    name: str
    values: Values
    low: Values = ()
    high: Values = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A reference line across a panel: chance, the training length, a theoretical value."""

    name: str
    at: Number
    side: Literal["x", "y"] = "y"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """Numbers plotted against numbers."""

    title: str
    x: Axis
    y: Axis
    places: tuple[Number, ...]
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """A number for each name."""

    title: str
    y: Axis
    names: tuple[str, ...]
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    is_signed: bool = False  # numbers for and against: their sign has a colour
    n_rest: int = 0  # of the last names: remainders rather than parts, drawn in grey
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cells:
    """Numbers in rows and columns; None where there is no such place.

    Nonnegative numbers, or with `is_signed` numbers of both signs, on a scale whose zero has the
    colour of the paper. A cell may carry a short text, such as a token.
    """

    title: str
    rows: str
    columns: str
    values: tuple[Values, ...]
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    texts: tuple[tuple[str, ...], ...] = ()
    legend: str = ""  # what the colours measure
    is_signed: bool = False
    most: Number | None = None  # where the colour scale ends; None: at the largest number
    # What a page tells of a single cell: further measures, and a list of names with numbers.
    measure_names: tuple[str, ...] = ()
    measures: tuple[tuple[Values, ...], ...] = ()
    lists: tuple[tuple[tuple[tuple[str, Number], ...], ...], ...] = ()
    kind: Literal["cells"] = "cells"

    @property
    def largest(self) -> Number:
        """Where the colour scale ends; 0 if every number is 0."""
        sizes = [abs(v) for row in self.values for v in row if v is not None and math.isfinite(v)]
        return max(sizes, default=0.0) if self.most is None else self.most


Panel = Lines | Bars | Cells


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels that belong together.

    >>> axis = Axis(label="n")
    >>> squares = Series(name="n²", values=(1.0, 4.0))
    >>> chart = Chart((Lines(title="", x=axis, y=axis, places=(1.0, 2.0), series=(squares,)),))
    >>> chart.as_dict()["panels"][0]["series"]
    [{'name': 'n²', 'values': [1.0, 4.0], 'low': [], 'high': []}]
    """

    panels: tuple[Panel, ...]
    title: str = ""
    caption: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"panels": [_plain(asdict(panel)) for panel in self.panels]}


def axis_limits(axis: Axis, values: list[Number]) -> tuple[Number, Number]:
    """The limits of an axis: those given, else the range of the numbers, widened if it is empty.

    >>> axis_limits(Axis(label="share", least=0.0), [0.5, 0.5])
    (0.0, 0.5)
    """
    kept = [v for v in values if v > 0] if axis.log else values
    low = min(kept, default=1.0) if axis.least is None else axis.least
    high = max(kept, default=low) if axis.most is None else axis.most
    if high > low:
        return low, high
    return (low / 2, low * 2) if axis.log else (low - 0.5, low + 0.5)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
