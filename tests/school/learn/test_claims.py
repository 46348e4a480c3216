"""Statements of the chapters that a test can carry, and the list of what they cite."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import glassformer as gf
from glassformer.functional import sinusoidal
from glassformer.languages import CODES, Language
from glassformer.school.learn import read_chapter
from glassformer.school.learn.blocks import Table
from glassformer.training import cross_entropy_sum

COURSE = Path(gf.__file__).parent / "course"
CITED = re.compile(
    r"([A-Z][a-z]+)(?: et al\.|(?:, [A-Z][a-z]+)* and [A-Z][a-z]+)?,? \(?((?:19|20)\d\d[a-z]?)"
)
NO_WORKS = {("In", "2014")}  # a year in a sentence


@pytest.fixture(scope="module")
def reader():
    return gf.load("reader")


def role_of(reader, text, layer, head):
    tokens = torch.tensor([reader.tokenizer.encode(text)])
    with torch.no_grad(), gf.watch(reader) as seen:
        reader(tokens)
    return gf.roles(seen[f"encoder.{layer}.self"], tokens[0])[head]


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat on the mat.",
        "The cat of my aunt sat on the mat.",
        "Never had the captain seen such a storm.",
        "On the table lay a letter from her brother.",
    ],
)
def test_the_head_of_chapter_13_attends_to_the_next_token(reader, text):
    role = role_of(reader, text, 1, 2)
    assert role.role == "next" and role.score > 0.75


def test_the_head_that_the_workbench_shows_for_positions_attends_to_the_previous_token(reader):
    role = role_of(reader, "The king sat upon his [MASK].", 2, 2)
    assert role.role == "previous" and role.score > 0.7


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.3])
def test_the_target_of_label_smoothing_is_where_the_gradient_is_zero(epsilon):
    V, right = 7, torch.tensor([2])
    target = torch.full((1, V), epsilon / V, dtype=torch.float64)
    target[0, 2] += 1 - epsilon
    assert target.sum() == pytest.approx(1)
    for measure in (
        nn.CrossEntropyLoss(label_smoothing=epsilon),
        lambda logits, right: cross_entropy_sum(logits[None], right[None], smoothing=epsilon),
    ):
        logits = target.log().requires_grad_()
        (gradient,) = torch.autograd.grad(measure(logits, right), logits)
        assert gradient.abs().max() < 1e-6


def test_a_shift_of_sinusoids_is_one_rotation_wherever_it_begins():
    table = sinusoidal(200, 16).double()
    angle = 5 / 10000 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    sine, cosine = table[:, 0::2], table[:, 1::2]
    shifted = torch.stack(
        [sine * angle.cos() + cosine * angle.sin(), cosine * angle.cos() - sine * angle.sin()], -1
    ).flatten(1)
    torch.testing.assert_close(shifted[:195], table[5:], atol=1e-4, rtol=0)


def test_a_decoder_without_positions_can_count_with_its_mask():
    """One key that differs from all others receives 1 / (p + 1), which tells the position."""
    k = torch.zeros(1, 1, 9, 4)
    v = torch.zeros(1, 1, 9, 1)
    v[:, :, 0] = 1.0
    out = gf.attention(k, k, v, mask=gf.Causal())[0, 0, :, 0]
    torch.testing.assert_close(1 / out, torch.arange(1, 10).float())


def test_scores_grow_with_the_heads_and_their_products_do_not():
    for n_heads in (1, 2, 4, 8):
        q = torch.randn(1, n_heads, 10, 64 // n_heads)
        with FlopCounterMode(display=False) as counter:
            scores = q @ q.transpose(-1, -2)
        assert counter.get_total_flops() == 2 * 10 * 10 * 64
        assert scores.numel() == n_heads * 100


def listed_works(code):
    (papers,) = [b for b in read_chapter("mastery", Language(code)).blocks if isinstance(b, Table)][
        1:
    ]
    return [row[0] for row in papers.rows]


@pytest.mark.parametrize("code", CODES)
def test_every_work_in_the_list_has_a_link(code):
    works = listed_works(code)
    assert len(works) >= 38
    for line in works:
        assert [piece.leaves_course for piece in line if piece.kind == "link"] == [True], line


def test_both_languages_list_the_same_links():
    english, chinese = (
        [piece.target for line in listed_works(code) for piece in line if piece.target]
        for code in CODES
    )
    assert english == chinese and len(set(english)) == len(english)


def test_every_cited_work_is_in_the_list():
    names = ["".join(piece.text for piece in line) for line in listed_works("en")]
    listed = {
        (name.split()[0].strip(","), re.search(r"(?:19|20)\d\d[a-z]?", name)[0]) for name in names
    }
    assert len(listed) == len(names)  # two works of one year have letters: 2023a, 2023b
    files = [*COURSE.glob("chapters/en/*.md"), *COURSE.glob("exercises/*/en.md")]
    files += [*COURSE.glob("questions/*.toml"), *COURSE.glob("experiments/*.toml")]
    for file in files:
        cited = {(name, year) for name, year in CITED.findall(file.read_text("utf-8"))}
        missing = {
            (name, year)
            for name, year in cited - listed - NO_WORKS
            if not any(name in line and year in line for line in names)
        }
        assert not missing, file
