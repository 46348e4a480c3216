"""The map of effects as values."""

from dataclasses import replace

import pytest
import torch

from glassformer.analysis import Role, Sweep
from glassformer.languages import Language
from glassformer.render.chart import Bars, Cells
from glassformer.render.charts.sweep import chart_of_sweep

ENGLISH = Language("en")


def made(over: str, rows: list[str], columns: list[str], values) -> Sweep:
    return Sweep(
        over=over,
        measured="logit ' he' − ' they'",
        rows=rows,
        columns=columns,
        values=torch.tensor(values, dtype=torch.float64),
        clean=3.0,
        corrupted=1.0,
    )


NAN = float("nan")
HEADS = made("heads", ["decoder.0.self", "decoder.1.self"], ["0", "1"], [[1, 2], [0.999, NAN]])


def test_effects_are_signed_and_the_last_layer_is_on_top() -> None:
    (panel,) = chart_of_sweep(HEADS, ENGLISH).panels
    assert isinstance(panel, Cells) and panel.is_signed
    assert panel.row_names == ("decoder.1.self", "decoder.0.self")
    assert panel.values == ((-0.0005, None), (0.0, 0.5))
    assert panel.texts == (("0 %", ""), ("0 %", "+50 %"))


def test_roles_are_drawn_where_they_are_known() -> None:
    role = Role(layer_head=("decoder.0.self", 1), role="induction", score=0.75, sink=0.0, scores={})
    chart = chart_of_sweep(HEADS, Language("zh"), [role])
    effects, roles = chart.panels
    assert isinstance(roles, Cells) and roles.row_names == effects.row_names
    assert roles.texts == (("", ""), ("", "归纳"))
    assert roles.values == ((None, None), (None, 0.75))


def test_one_column_is_drawn_as_bars() -> None:
    (panel,) = chart_of_sweep(made("parts", ["a", "b"], ["all"], [[3], [0]]), ENGLISH).panels
    assert isinstance(panel, Bars) and panel.names == ("b", "a")
    assert panel.series[0].values == (-0.5, 1.0)


def test_many_columns_have_no_numbers_inside() -> None:
    columns = [f"{i} x" for i in range(17)]
    wide = made("borders × positions", ["decoder.start"], columns, [[1.0] * 17])
    (panel,) = chart_of_sweep(wide, ENGLISH).panels
    assert panel.texts == () and panel.column_names == tuple(columns)
    assert "1 the clean run (3)" in chart_of_sweep(wide, ENGLISH).caption


def test_edges_lead_from_rows_to_columns_and_estimates_say_that_they_are() -> None:
    found = made("edges", ["decoder.start"], ["decoder.0.mlp", "logits"], [[1, 2]])
    (panel,) = chart_of_sweep(found, ENGLISH).panels
    assert isinstance(panel, Cells) and panel.columns == "receiver"
    assert panel.title == "Effect of patching each edge, from row to column"
    guessed = replace(HEADS, method="gradient")
    assert "not tested by patches" in chart_of_sweep(guessed, ENGLISH).caption


@pytest.mark.plain
@pytest.mark.parametrize("code", ["en", "zh"])
def test_a_sweep_over_something_new_is_drawn_by_its_name(code) -> None:
    chart = chart_of_sweep(made("rows × things", ["a"], ["x", "y"], [[1, 2]]), Language(code))
    assert "rows × things" in chart.panels[0].title
