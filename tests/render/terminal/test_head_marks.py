"""A mark for every head, whatever the width of the window, and brackets around groups."""

import math

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.render.terminal.head_marks import draw_marks
from glassformer.render.terminal.overview import draw_overview
from glassformer.tracing import Run, Trace, record
from render.paper import lines


@pytest.mark.parametrize("width", [48, 60, 80, 100])
@pytest.mark.parametrize("heads", [1, 12, 13, 16, 20, 21, 32, 64, 128])
def test_every_head_has_its_mark_in_every_window(heads, width):
    rows = {"0": [1.0] * heads, "1": [0.1] * heads}
    drawn = lines(draw_marks("decoder · self", rows, range(heads), width=width), width)
    cells = 1 if heads > 20 else 2
    text = "".join(drawn)
    assert text.count("█") == text.count("░") == cells * heads
    assert max(map(len, drawn)) <= width
    if heads <= 20:
        numbers = [n for line in drawn if "█" not in line and "░" not in line for n in line.split()]
        assert [int(n) for n in numbers if n.isdecimal()] == list(range(heads))


def test_lines_go_on_under_their_own_numbers():
    drawn = lines(draw_marks("self", {"0": [0.9] * 8}, range(8), width=20), 20)
    assert drawn == [
        "self   0  1  2  3  4",
        "   0  ██ ██ ██ ██ ██",
        "       5  6  7",
        "   0  ██ ██ ██",
    ]


def test_groups_are_bracketed_and_not_broken():
    drawn = lines(draw_marks("self", {"0": [0.9] * 8}, range(8), width=20, group=4), 20)
    assert drawn == [
        "self   0  1  2  3",
        "      └─────────┘",
        "   0  ██ ██ ██ ██",
        "       4  5  6  7",
        "      └─────────┘",
        "   0  ██ ██ ██ ██",
    ]


def test_even_has_a_mark_and_no_choice_a_dot():
    drawn = lines(draw_marks("self", {"0": [0.0, 1.0, math.nan]}, range(3)))
    assert drawn[1] == "   0  ░░ ██ ··"


def test_a_difference_of_nothing_is_blank():
    drawn = lines(draw_marks("", {"0": [0.5, 0.0, 1e-4]}, range(3), blank_zero=True))
    assert drawn[1] == "0  ▓▓    ░░"


def test_the_overview_brackets_heads_that_share_keys():
    q, k = torch.randn(1, 6, 5, 4), torch.randn(1, 2, 5, 4)
    site = record(q, k, k, mask=gf.Causal(), name="decoder.0.self")
    drawn = lines(draw_overview(Trace([Run({site.name: site})]), language=Language("en")))
    assert drawn[1].strip() == "└──────┘ └──────┘"
    assert "Bracketed heads share a key-value head." in drawn
    alone = record(q, q, q, mask=gf.Causal(), name="decoder.0.self")
    drawn = lines(draw_overview(Trace([Run({alone.name: alone})]), language=Language("en")))
    assert not any("└" in line or "Bracketed" in line for line in drawn)
