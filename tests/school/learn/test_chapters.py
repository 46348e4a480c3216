"""The chapters as texts: the same in both languages, in a form that everything can draw."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.learn import chapter_names, read_chapter, read_chapters
from glassformer.school.learn.blocks import (
    Formula,
    Heading,
    Items,
    Prose,
    Reference,
    Snippet,
    Table,
    plain_text,
)
from glassformer.school.learn.questions import read_questions

ENGLISH, CHINESE = (read_chapters(Language(code)) for code in ("en", "zh"))
PAIRS = [pytest.param(a, b, id=a.name) for a, b in zip(ENGLISH, CHINESE, strict=True)]
CHAPTERS = [
    pytest.param(c, id=f"{code}-{c.name}")
    for code, all_ in zip(CODES, (ENGLISH, CHINESE), strict=True)
    for c in all_
]
HAN = re.compile("[\u4e00-\u9fff]")
FOLDER = Path(__file__).parents[3] / "src" / "glassformer" / "course" / "chapters"


def of_kind(chapter, kind):
    return [block for block in chapter.blocks if isinstance(block, kind)]


def lines(chapter):
    for block in chapter.blocks:
        match block:
            case Prose(line) | Heading(_, line):
                yield line
            case Items(found, _):
                yield from found
            case Table(head, rows):
                yield from head
                for row in rows:
                    yield from row


def test_there_are_enough_and_they_are_numbered():
    assert len(chapter_names()) >= 16
    numbers = [chapter.number for chapter in ENGLISH]
    assert numbers[0] == 1 and numbers == sorted(set(numbers))
    assert numbers == [chapter.number for chapter in CHINESE]
    assert len(set(chapter_names())) == len(chapter_names())


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_both_languages_have_the_same_parts(english, chinese):
    assert [type(b) for b in english.blocks] == [type(b) for b in chinese.blocks]
    for one, other in zip(english.blocks, chinese.blocks, strict=True):
        match one:
            case Heading(level, _):
                assert level == other.level
            case Items(found, first):
                assert (len(found), first) == (len(other.lines), other.first)
            case Table(head, rows):
                assert (len(head), len(rows)) == (len(other.head), len(other.rows))
            case Formula(tex):
                assert tex == other.tex
            case Snippet(code, output):
                assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(other.code))
                assert output == other.output
            case Reference(kind, names, caption):
                assert (kind, names, bool(caption)) == (
                    other.kind,
                    other.names,
                    bool(other.caption),
                )


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_each_language_is_its_own(english, chinese):
    said = " ".join(plain_text(line) for line in lines(english))
    assert len(HAN.findall(said)) < 20  # 我 爱 你 is an example
    for block in of_kind(chinese, Prose):
        assert HAN.search(plain_text(block.line)), plain_text(block.line)
        assert not re.search(
            r"[\u4e00-\u9fff] ?[,.;:!?](\s|$)|[,;:!?][\u4e00-\u9fff]", plain_text(block.line)
        )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_weaves_everything(chapter):
    kinds = {block.kind for block in of_kind(chapter, Reference)}
    assert {"picture", "quiz"} <= kinds
    assert kinds & {"lab", "practice"}
    assert of_kind(chapter, Snippet)
    assert of_kind(chapter, Formula) or chapter.name in (
        "why",
        "shapes",
        "seeing",
        "mistakes",
        "mastery",
    )
    last = chapter.blocks[-1]
    assert isinstance(last, Reference) and last.kind == "quiz" and len(last.names) >= 3


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_snippets_are_narrow_and_show_what_they_print(chapter):
    for snippet in of_kind(chapter, Snippet):
        assert snippet.output
        assert max(map(len, snippet.code.splitlines())) <= 78


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_links_lead_to_other_chapters(chapter):
    files = {path.name for path in (FOLDER / "en").glob("*.md")}
    for line in lines(chapter):
        links = [piece for piece in line if piece.kind == "link"]
        assert all(piece.target in files or piece.leaves_course for piece in links)


def test_every_question_is_asked_at_the_end_of_its_chapter():
    for chapter in ENGLISH:
        asked = [q.name for q in read_questions() if q.topic == chapter.name]
        assert list(chapter.blocks[-1].names) == asked


def test_nothing_of_the_plan_shines_through():
    for code in CODES:
        for file in (FOLDER / code).glob("*.md"):
            text = file.read_text("utf-8")
            assert not re.search(r"\b[A-E]\d{1,2}\b|TODO", text), file
            assert all(len(b) - len(a) <= 1 for a, b in pairwise(re.findall("^#+", text, re.M)))


def test_a_chapter_is_found_by_name_or_number():
    assert read_chapter("5", Language("en")).name == "masks"
    assert read_chapter("masks", Language("en")).number == 5


@pytest.mark.plain
@pytest.mark.parametrize("code", CODES)
def test_an_unknown_chapter_is_named_with_the_known_ones(code):
    with pytest.raises(ConfigError, match=r".maskz.*why, weights, "):
        read_chapter("maskz", Language(code))
