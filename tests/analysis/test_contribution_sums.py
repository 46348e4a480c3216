"""Contributions add up to the final residual and the logit, for every architecture of the page."""

import pytest

from analysis.contribution_sums import (
    CASES,
    NONE,
    TOLERANCE,
    find_bound,
    format_row,
    measure,
    read_page,
)
from glassformer.tracing.stream import Stream


@pytest.mark.parametrize("name", CASES)
def test_contributions_add_up_as_the_page_says(name: str) -> None:
    rows, page = list(measure(CASES[name]())), read_page()[name]
    assert [row.stack for row in rows] == [cells[1] for cells in page]
    for row, cells in zip(rows, page, strict=True):
        measured = [row.residual, *row.logits.values()]
        bounds = [cell for cell in cells[3:7] if cell != NONE]
        for error, bound in zip(measured, bounds, strict=True):
            assert error <= float(bound.removeprefix("≤")) <= TOLERANCE
        given = format_row(row)
        assert (given[:3], given[7]) == (cells[:3], cells[7])


def test_the_page_has_every_model() -> None:
    assert list(read_page()) == list(CASES)


def test_a_part_that_is_left_out_breaks_the_rule(monkeypatch) -> None:
    whole = Stream.shares

    def without_one(self, **where):
        return {n: share for n, share in whole(self, **where).items() if n != "decoder.1.mlp"}

    monkeypatch.setattr(Stream, "shares", without_one)
    (row,) = measure(CASES["Llama"]())
    assert row.residual > 100 * TOLERANCE
    with pytest.raises(AssertionError, match="breaks the rule"):
        find_bound(row.residual)
