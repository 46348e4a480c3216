import math

import pytest
from rich.cells import cell_len

from glassformer.render.marks import label, shade


def test_shades_grow_with_the_share():
    shades = [shade(i / 100) for i in range(101)]
    order = [" ░▒▓█".index(mark) for mark in shades]
    assert order == sorted(order)
    assert (shades[0], shades[1], shades[-1]) == (" ", "░", "█")
    assert shade(math.nan) == " "


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("cat", "cat"),
        ("我", "我"),
        (" sat", "␣sat"),
        ("  ", "␣␣"),
        ("a b ", "a b␣"),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("", ""),
        ("[bold]x", "[bold]x"),
        ("\x1b[31m", "\\x1b[31m"),
    ],
)
def test_a_token_stays_whole_and_on_one_line(token, shown):
    assert label(token).plain == shown
    assert cell_len(shown) >= len(shown)
