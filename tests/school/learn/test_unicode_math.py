"""Formulas as text and as MathML."""

import re
from xml.etree import ElementTree

import pytest

from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.learn import read_chapters, read_questions
from glassformer.school.learn.blocks import Formula, Heading, Items, Prose, Table, read_line
from glassformer.school.learn.mathml import display_mathml, inline_mathml
from glassformer.school.learn.unicode_math import split_rows, to_unicode


def used():
    """Every formula of every chapter and every question."""
    for code in CODES:
        for chapter in read_chapters(Language(code)):
            for block in chapter.blocks:
                found = []
                match block:
                    case Formula(tex):
                        yield tex
                    case Prose(line) | Heading(_, line):
                        found = [line]
                    case Items(lines, _):
                        found = lines
                    case Table(head, rows):
                        found = [*head, *(cell for row in rows for cell in row)]
                yield from (p.text for line in found for p in line if p.kind == "formula")
        for question in read_questions():
            for text in (question.ask, question.short, question.full):
                yield from (p.text for p in read_line(text[code]) if p.kind == "formula")


USED = sorted(set(used()))


def test_many_are_used():
    assert len(USED) > 100


@pytest.mark.parametrize("tex", USED)
def test_every_formula_can_be_read_and_drawn(tex):
    text = to_unicode(tex)
    assert text and (not set(text) & set("\\{}&\0") or "rbrace" in tex)
    for markup in (
        inline_mathml(tex) if len(split_rows(tex)) == 1 else "<math/>",
        display_mathml(tex),
    ):
        root = ElementTree.fromstring(markup)
        shown = "".join(root.itertext())
        assert "\\" not in shown and "&" not in shown


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\frac{a + b}{c}", "(a + b) / c"),
        (r"\frac{1}{\sqrt{d_k}}", "1 / √dₖ"),
        (r"\frac{6}{C + D}", "6 / (C + D)"),
        (r"\sqrt{6 / (C + D)}", "√(6 / (C + D))"),
        (r"W_Q", "W_Q"),
        (r"x_{b,l,c}", "x_(b,l,c)"),
        (r"e^{-\infty}", "e^(−∞)"),
        (r"10^{-9}", "10⁻⁹"),
        (r"\mathrm{lse}_i", "lseᵢ"),
        (r"a \quad b", "a     b"),
        (r"\lbrace 0, -\infty \rbrace", "{ 0, −∞ }"),
        (r"a \times b \to c", "a × b → c"),
        (r"\begin{aligned} a &= b \\ cc &= d \end{aligned}", "a  = b\ncc = d"),
    ],
)
def test_how_formulas_read(tex, text):
    assert to_unicode(tex) == text


def test_words_are_set_as_words():
    assert "<mi>softmax</mi>" in inline_mathml(r"\mathrm{softmax}(x)")
    assert 'display="block"' in display_mathml("x")
    assert re.search(
        r"<munderover>.*∑|<munderover>.*&#x02211;", display_mathml(r"\sum_{i=1}^{n} x_i")
    )


@pytest.mark.plain
def test_what_cannot_be_written_is_named():
    with pytest.raises(ConfigError, match=r"commands that we can write as text; got \\heartsuit"):
        to_unicode(r"\heartsuit")
    with pytest.raises(ConfigError, match=r"brace of a formula must be closed; got '\\\\sqrt\{x'"):
        to_unicode(r"\sqrt{x")
