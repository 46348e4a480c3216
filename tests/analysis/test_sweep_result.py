"""The result of a sweep: tables, files, and how far estimates are off."""

import csv
import io
import json
import math
from pathlib import Path

import pytest
import torch

from glassformer.analysis import Sweep
from glassformer.errors import TraceError


def made(*, with_estimates: bool = True) -> Sweep:
    nan = math.nan
    return Sweep(
        over="heads",
        measured="logit 'a' − 'b'",
        rows=["decoder.0.self", "decoder.1.self"],
        columns=["0", "1"],
        values=torch.tensor([[1.0, 2.0], [1.5, nan]], dtype=torch.float64),
        clean=3.0,
        corrupted=1.0,
        method="both" if with_estimates else "patch",
        estimates=torch.tensor([[1.0, 1.75], [0.75, nan]], dtype=torch.float64)
        if with_estimates
        else None,
    )


def test_effects_are_shares_of_the_way() -> None:
    found = made()
    assert found.effects[0].tolist() == [0.0, 0.5] and found.effects[1, 0] == 0.25
    assert found.top(2) == [("decoder.0.self", "1", 0.5), ("decoder.1.self", "0", 0.25)]
    assert len(found.top()) == 3  # the fourth cell has no place
    assert [each.effect for each in found.table] == [0.0, 0.5, 0.25]


def test_agreement_by_hand() -> None:
    agreement = made().agreement
    assert agreement is not None
    # Effects 0, 0.5, 0.25 have ranks 1, 3, 2; estimates 0, 0.375, −0.125 have ranks 2, 3, 1.
    assert agreement.correlation == pytest.approx(0.5)
    assert agreement.signs == 0.5  # of the two that have an effect
    assert agreement.worst[:2] == ("decoder.1.self", "0")
    assert "+25.0%" in str(made()) and "-12.5% instead of +25.0%" in str(agreement)


def test_a_saved_sweep_is_the_same(tmp_path: Path) -> None:
    for found in (made(), made(with_estimates=False)):
        path = tmp_path / f"{found.method}.json"
        found.save(path)
        again = Sweep.load(path)
        assert again.as_dict() == found.as_dict() and str(again) == str(found)
    assert json.loads((tmp_path / "both.json").read_text())["values"][1][1] is None


def test_csv_has_a_line_for_each_cell() -> None:
    lines = list(csv.reader(io.StringIO(made().as_csv())))
    assert lines[0] == ["row", "column", "value", "effect", "estimate"]
    assert lines[2] == ["decoder.0.self", "1", "2.0", "0.5", "0.375"] and len(lines) == 4
    assert made(with_estimates=False).as_csv().startswith("row,column,value,effect\n")


def test_files_that_are_no_sweep_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    with pytest.raises(TraceError, match="could not be read: No such file"):
        Sweep.load(other)
    for text in ("{}", "not JSON", '{"format": "glassformer sweep", "rows": 3}'):
        other.write_text(text)
        with pytest.raises(TraceError, match="is not a saved sweep"):
            Sweep.load(other)
    other.write_text("something else")
    with pytest.raises(TraceError, match="glassformer did not write it"):
        made().save(other)
    assert other.read_text() == "something else"
