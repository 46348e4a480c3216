"""Markdown to blocks."""

import pytest

from glassformer.errors import ConfigError
from glassformer.school.learn.blocks import (
    Formula,
    Items,
    Piece,
    Prose,
    Reference,
    Snippet,
    Table,
    Verbatim,
    plain_text,
    read_blocks,
    read_line,
)


def test_a_snippet_takes_the_text_below_it_as_its_output():
    text = "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\nx = 2\n```\n\nwords\n"
    assert read_blocks(text) == (
        Snippet("print(1)", "1"),
        Snippet("x = 2", ""),
        Prose((Piece("words"),)),
    )
    assert read_blocks("```text\nas it is\n```") == (Verbatim("as it is"),)
    assert read_blocks("```python\na = 1\n```") == (Snippet("a = 1", ""),)


def test_formulas_are_left_alone():
    assert read_blocks("```math\na_1 \\cdot b_2\n```") == (Formula("a_1 \\cdot b_2"),)
    line = read_line(r"both $a_1$ and $\sqrt{b_2}$, for 5 $ more")
    assert [p.text for p in line if p.kind == "formula"] == ["a_1", r"\sqrt{b_2}"]
    assert plain_text(line) == "both a₁ and √b₂, for 5 $ more"


def test_references_have_names_and_perhaps_a_caption():
    assert read_blocks("{{picture cat | *cat* asks, | answers.}}") == (
        Reference("picture", ("cat",), "*cat* asks, | answers."),
    )
    assert read_blocks("{{lab scale}}\n\n{{practice a b}}") == (
        Reference("lab", ("scale",)),
        Reference("practice", ("a", "b")),
    )


def test_lists_keep_their_first_number():
    (found,) = read_blocks("2. two\n3. three\n")
    assert isinstance(found, Items)
    assert (found.first, [plain_text(line) for line in found.lines]) == (2, ["two", "three"])
    (found,) = read_blocks("- one\n- two `code`\n")
    assert found.first is None and found.lines[1][1].kind == "code"


def test_tables():
    (found,) = read_blocks("| a | b |\n|---|---|\n| 1 | *2* |\n")
    assert isinstance(found, Table)
    assert [plain_text(cell) for cell in found.head] == ["a", "b"]
    assert found.rows[0][1] == (Piece("2", "emphasis"),)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("one\ntwo", "one two"),
        ("权重相加，\n得到输出", "权重相加，得到输出"),
        ("softmax\n之前", "softmax之前"),
        ("a **b\nc** d", "a b c d"),
    ],
)
def test_broken_lines_are_joined(written, read):
    (block,) = read_blocks(written)
    assert plain_text(block.line) == read


@pytest.mark.plain
@pytest.mark.parametrize(
    ("text", "named"),
    [("> quoted", "blockquote_open in line 1"), ("words\n\n---\n", "hr in line 3")],
)
def test_what_no_one_could_draw_is_refused(text, named):
    with pytest.raises(ConfigError, match=f"headings, paragraphs, .*got {named}"):
        read_blocks(text)


@pytest.mark.plain
def test_pictures_by_address_are_refused():
    with pytest.raises(ConfigError, match=r"words, \*\*strong\*\*.*got image"):
        read_blocks("see ![a](b.png)")
