"""A figure of measured numbers as plain values: what a terminal, a file and a web page all draw.

A chart is panels side by side. `Lines` have numbers along both sides, `Bars` a name for each
number, `Cells` a number for each row and column. Nothing here knows how it will look.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Number = float | int
Values = tuple[Number | None, ...]  # None where nothing was measured


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """What is counted along a side, and whether equal steps are equal factors."""

    label: str
    log: bool = False
    least: Number | None = None  # where the side begins and ends, unless the numbers decide
    most: Number | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One name and its numbers, as many as the panel has places."""

    name: str
    values: Values


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A line across a panel: chance, the trained length, what theory says."""

    name: str
    at: Number
    side: Literal["x", "y"] = "y"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """Numbers over numbers."""

    title: str
    x: Axis
    y: Axis
    places: tuple[Number, ...]
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """Numbers beside names."""

    title: str
    y: Axis
    names: tuple[str, ...]
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cells:
    """Numbers in rows and columns, from 0 up."""

    title: str
    rows: str
    columns: str
    values: tuple[tuple[Number, ...], ...]
    kind: Literal["cells"] = "cells"


Panel = Lines | Bars | Cells


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels that belong together.

    >>> axis = Axis(label="n")
    >>> squares = Series(name="n²", values=(1.0, 4.0))
    >>> chart = Chart((Lines(title="", x=axis, y=axis, places=(1.0, 2.0), series=(squares,)),))
    >>> chart.as_dict()["panels"][0]["series"]
    [{'name': 'n²', 'values': [1.0, 4.0]}]
    """

    panels: tuple[Panel, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"panels": [_plain(asdict(panel)) for panel in self.panels]}


def extent(axis: Axis, values: list[Number]) -> tuple[Number, Number]:
    """From where to where a side reaches: all the numbers, with room where they are all one.

    >>> extent(Axis(label="share", least=0.0), [0.5, 0.5])
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
