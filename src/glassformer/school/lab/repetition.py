"""Several runs of one experiment, each with its own seed, as one verdict and one chart.

A training run is one draw from a distribution. A check of the whole holds only if it holds in every
run; its numbers, and the lines and bars of the chart, are the mean with the least and the most.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from glassformer.render.chart import Bars, Cells, Chart, Lines, Number, Panel, Series, Values
from glassformer.render.numbers import Spread
from glassformer.school.lab.experiment import Check, Outcome, Verdict


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """Judge all runs: "holds" means every check in every run.

    The claim holds partly if its heart, the first check, does in more than half of the runs.

    >>> good, bad = Verdict.of(Check("slope", True)), Verdict.of(Check("slope", False))
    >>> combine_verdicts([good, good, bad]).outcome
    'partly'
    >>> combine_verdicts([good, bad, bad]).outcome
    'fails'
    """
    if len(verdicts) == 1:
        return verdicts[0]
    by_check = list(zip(*(verdict.checks for verdict in verdicts), strict=True))
    checks = tuple(
        Check(
            same[0].key,
            all(check.holds for check in same),
            {
                name: _combine_values([check.values[name] for check in same])
                for name in same[0].values
            },
            tuple(check.holds for check in same),
        )
        for same in by_check
    )
    outcome: Outcome = "fails"
    if all(check.holds for check in checks):
        outcome = "holds"
    elif 2 * checks[0].n_held > checks[0].n_runs:
        outcome = "partly"
    return Verdict(outcome, checks)


def _combine_values(values: list[Any]) -> Any:
    """Measured numbers become a spread; names and counts that differ are listed."""
    if all(value == values[0] for value in values):
        return values[0]
    if all(isinstance(value, float) for value in values):
        return Spread(sum(values) / len(values), min(values), max(values))
    return ", ".join(map(str, dict.fromkeys(values)))


def combine_charts(charts: Sequence[Chart]) -> Chart:
    """The charts of all runs as one: means, with the range of the runs beside them.

    A run that is still going on may have fewer bars and points than the others.
    """
    if len(charts) == 1:
        return charts[0]
    by_panel = zip(*(chart.panels for chart in charts), strict=True)
    return replace(charts[0], panels=tuple(_combine_panels(same) for same in by_panel))


def _combine_panels(same: Sequence[Panel]) -> Panel:
    longest = max(same, key=_count_places)
    if isinstance(longest, Cells):
        raise TypeError("A grid of cells shows one run; an experiment with seeds draws lines.")
    n = _count_places(longest)
    series = zip(*(panel.series for panel in same if not isinstance(panel, Cells)), strict=True)
    marks = zip(*(panel.marks for panel in same if not isinstance(panel, Cells)), strict=True)
    return replace(
        longest,
        series=tuple(_combine_series(each, n) for each in series),
        marks=tuple(
            replace(each[0], at=sum(mark.at for mark in each) / len(each)) for each in marks
        ),
    )


def _combine_series(same: Sequence[Series], n: int) -> Series:
    known: list[list[Number]] = [[] for _ in range(n)]
    for series in same:
        for at, value in zip(known, series.values, strict=False):
            if value is not None:
                at.append(value)

    def choose(of: Any) -> Values:
        return tuple(of(values) if values else None for values in known)

    means = choose(lambda values: sum(values) / len(values))
    return Series(name=same[0].name, values=means, low=choose(min), high=choose(max))


def _count_places(panel: Panel) -> int:
    if isinstance(panel, Lines):
        return len(panel.places)
    return len(panel.names) if isinstance(panel, Bars) else len(panel.values)
