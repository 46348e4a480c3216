"""Sweeps in the terminal: what is drawn, and what its sentence says."""

import math

import torch

from glassformer.analysis import Role, Sweep
from glassformer.languages import Language
from glassformer.render.terminal.sweep import draw_sweep
from render.paper import lines


def made(over, rows, columns, effects, **more):
    values = torch.tensor(effects, dtype=torch.float64)
    return Sweep(
        over=over,
        measured="score",
        rows=rows,
        columns=columns,
        values=values,
        clean=1.0,
        corrupted=0.0,
        **more,
    )


def drawn(found, width=60, **options):
    return lines(draw_sweep(found, width=width, language=Language("en"), **options), width=width)


def test_heads_that_do_not_fit_continue_below():
    effects = [[(i - h) / 100 for h in range(12)] for i in range(2)]
    found = made(
        "heads", ["decoder.0.self", "decoder.1.self"], [str(h) for h in range(12)], effects
    )
    named = {("decoder.0.self", 0): "previous", ("decoder.1.self", 11): "induction"}
    heads = [
        Role(layer_head=head, role=role, score=1.0, sink=0.0, scores={})
        for head, role in named.items()
    ]
    shown = drawn(found, heads=heads)
    rows = [line for line in shown if line.startswith("decoder.1.self ")]
    assert len(rows) == 2 and rows[0].split()[1:4] == ["+1", "·", "-1"]
    assert rows[1].split()[-1] == "i" and "p · ·" in " ".join(shown)
    assert any("away from the clean one" in line for line in shown)


def test_where_the_difference_moves():
    effects = [[1.0, 0.0], [0.6, 0.4], [0.3, 0.7], [0.0, 1.0]]
    rows = ["decoder.start", "decoder.0.self", "decoder.0.mlp", "decoder.1.self"]
    shown = " ".join(drawn(made("borders × positions", rows, ["0 a", "1 b"], effects)))
    assert "enters at 0 a and ends at 1 b: from decoder.0.mlp on" in shown


def test_missing_edges_are_blank_and_receivers_short():
    nan = math.nan
    columns = ["decoder.1.mlp", "logits"]
    found = made("edges", ["decoder.0.mlp", "decoder.1.mlp"], columns, [[0.5, -0.25], [nan, 0.1]])
    shown = drawn(found)
    assert any(line.split() == ["1.mlp", "logits"] for line in shown)
    assert any(line.split() == ["decoder.1.mlp", "+10"] for line in shown)
    assert any("decoder.0.mlp → decoder.1.mlp" in line and "+50.0 %" in line for line in shown)
    assert "half of this effect: 2 of 3" in " ".join(shown)


def test_estimates_say_that_they_are():
    effects = [[0.5], [0.25]]
    found = made("parts", ["a.0.self", "a.0.mlp"], ["all"], effects, method="gradient")
    assert "not tested by patches" in " ".join(drawn(found))
    estimates = torch.tensor([[0.4], [0.3]], dtype=torch.float64)
    both = made("parts", found.rows, ["all"], effects, method="both", estimates=estimates)
    shown = " ".join(drawn(both))
    assert "rank correlation 1.00" in shown and "+40.0 % instead of +50.0 %" in shown
