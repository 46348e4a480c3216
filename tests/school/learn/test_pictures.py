"""The pictures: computed, not typed, and drawn for the terminal and for the book."""

import io
import math

import pytest
import torch
from rich.cells import cell_len
from rich.console import Console

from glassformer.errors import ConfigError
from glassformer.fromscratch import causal_weights
from glassformer.languages import CODES, Language
from glassformer.school.learn import read_chapters
from glassformer.school.learn.blocks import Reference
from glassformer.school.learn.picture import Bars, Flow, Matrix, Row, Steps
from glassformer.school.learn.picture_html import picture_markup
from glassformer.school.learn.picture_terminal import draw_picture
from glassformer.school.learn.pictures import PICTURES, draw

ENGLISH = Language("en")


def printed(picture, width, language=ENGLISH):
    console = Console(file=io.StringIO(), width=width)
    console.print(draw_picture(picture, language=language))
    return console.file.getvalue()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", sorted(PICTURES))
def test_every_picture_is_drawn_in_both_ways(name, code):
    language = Language(code)
    picture = draw(name, language)
    shown = printed(picture, 78, language)
    assert shown.strip()
    assert max(map(cell_len, shown.splitlines())) <= 78
    assert picture_markup(picture, language=language).startswith("<")


def test_every_picture_is_used():
    used = {
        name
        for chapter in read_chapters(ENGLISH)
        for block in chapter.blocks
        if isinstance(block, Reference) and block.kind == "picture"
        for name in block.names
    }
    assert used == set(PICTURES)


def test_the_numbers_of_the_cat():
    picture = draw("cat", ENGLISH)
    assert isinstance(picture, Steps)
    assert [round(w, 2) for w in picture.row.weights.tolist()] == [0.06, 0.63, 0.31]
    assert "0.63" in printed(picture, 78)
    assert "<td>3.85</td>" in picture_markup(picture, language=ENGLISH)


def test_the_three_words_are_those_of_the_plain_form():
    picture = draw("three-words", ENGLISH)
    assert isinstance(picture, Row)
    scores, masked, weights = picture.pictures
    assert torch.equal(weights.values, causal_weights(scores.values))
    assert masked.values[0].tolist() == [10.0, -math.inf, -math.inf]
    assert "−∞" in printed(picture, 78)


def test_shapes_come_from_runs():
    left, right = draw("many-heads", ENGLISH).pictures
    assert isinstance(left, Flow)
    assert left.stages[-1].shape == (2, 8, 10, 96)
    assert [stage.shape for stage in right.stages][1] == (2, 8, 10, 10)
    queries, keys, attended = draw("cross", ENGLISH).pictures
    assert (queries.stages[-1].shape, keys.stages[-1].shape) == ((2, 3, 5, 4), (2, 3, 7, 4))
    assert attended.stages[0].shape == (2, 3, 5, 7)
    for name in ("single-head", "many-heads", "cross", "block", "transformer"):
        found = draw(name, ENGLISH)
        for flow in found.pictures if isinstance(found, Row) else [found]:
            for stage in flow.stages:
                assert len(stage.letters.split()) == len(stage.shape)


def test_the_mean_is_the_mean_and_drawing_draws_no_random_numbers():
    before = torch.random.get_rng_state()
    one, other, mean = draw("averaged", ENGLISH).pictures
    assert torch.allclose((one.values + other.values) / 2, mean.values, atol=1e-6)
    for name in PICTURES:
        draw(name, ENGLISH)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_hand_built_head_looks_back():
    picture = draw("previous", ENGLISH)
    assert isinstance(picture, Matrix)
    assert picture.values.argmax(-1).tolist() == [0, 0, 1, 2, 3, 4]


def test_bars_share_a_scale_where_they_are_compared():
    for bars in draw("peaks", ENGLISH).pictures:
        assert isinstance(bars, Bars) and bars.full == 1.0
    plain, scaled = draw("peaks", ENGLISH).pictures
    assert plain.bars[-1][1] > 0.9 > 0.5 > scaled.bars[-1][1]


@pytest.mark.plain
def test_an_unknown_picture_is_named_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"A picture is one of distances, .*; got 'cats'"):
        draw("cats", ENGLISH)
