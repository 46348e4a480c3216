import math

import pytest
from rich.cells import cell_len

from glassformer.render.marks import label, shade, split_graphemes


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
        ("\x9b2J", "\\x9b2J"),
        ("\ud800", "\\ud800"),
        ("\u0301x", "◌\u0301x"),
        ("👨\u200d👩", "👨\\u200d👩"),
        ("❤\ufe0f", "❤"),
        ("👋🏽", "👋\\U0001f3fd"),
        ("שלום", "\u200eשלום\u200e"),
    ],
)
def test_a_token_stays_whole_and_on_one_line(token, shown):
    assert label(token).plain == shown
    assert "\n" not in shown and "\x1b" not in shown


def test_a_token_is_cut_by_cells():
    assert label("我们坐下了", 6).plain == "我们…"
    assert label("שלוםשלום", 5).plain == "\u200eשלום…\u200e"
    assert [cell_len(label(token, 9).plain) for token in ("x" * 50, "猫" * 50)] == [9, 9]
    assert len(label("x" * 10_000_000).plain) == 201


def test_signs_keep_their_accents():
    assert split_graphemes("e\u0301a\u0308\u0301b") == ["e\u0301", "a\u0308\u0301", "b"]
