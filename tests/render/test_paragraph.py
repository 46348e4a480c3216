import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.cells import cell_len

from glassformer.render.paragraph import Paragraph, wrap_text
from render.paper import lines


def test_english_breaks_between_words():
    assert wrap_text("Three words, each compared with each.", 16) == [
        "Three words,",
        "each compared",
        "with each.",
    ]


def test_chinese_breaks_between_characters_but_not_before_a_comma():
    assert wrap_text("权重相加，得到输出。", 8) == ["权重相", "加，得到", "输出。"]
    assert wrap_text("（权重）（输出）", 8) == ["（权重）", "（输出）"]


def test_words_inside_chinese_stay_whole():
    assert wrap_text("再用 softmax 归一化", 12) == ["再用 softmax", "归一化"]


@given(st.text(alphabet="ab 权重，。（） ", max_size=40), st.integers(8, 30))
def test_nothing_is_lost_and_lines_fit(text, width):
    assume(not re.search("(^| )[，。）]", text))
    found = wrap_text(text, width)
    assert "".join(found).replace(" ", "") == text.replace(" ", "")
    for line in found:
        assert line == line.rstrip()
        unbroken = max((cell_len(piece) for piece in line.split()), default=0)
        assert cell_len(line) <= width or unbroken >= width - 1
        assert not line.startswith(("，", "。", "）"))


@pytest.mark.parametrize("width", [20, 40])
def test_a_paragraph_fills_the_width_it_has(width):
    text = "a " * 60
    assert lines(Paragraph(text), width) == wrap_text(text, width)
