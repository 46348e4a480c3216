"""Every sentence of the chapters is classed, and every claim has something that carries it."""

import ast
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from glassformer.school.learn import chapter_names
from glassformer.school.learn.blocks import read_line

DOCS = Path(__file__).parents[2] / "docs"
claims = SimpleNamespace(**runpy.run_path(str(DOCS / "claims.py")))
LISTS = {name: claims.read_list(file) for name, file in claims.listed_chapters().items()}


def test_every_sentence_is_classed_and_every_carrier_exists():
    problems = list(claims.find_problems())
    assert not problems, "\n".join(problems)


def test_the_page_is_what_the_lists_say():
    hint = "run python docs/claims.py"
    assert (DOCS / "claims.md").read_text("utf-8") == claims.write_page(), hint


def test_there_are_at_least_150_claims_and_some_in_every_chapter():
    counts = {name: sum(bool(each.by) for each in found) for name, found in LISTS.items()}
    assert sum(counts.values()) >= 150
    assert min(counts.values()) >= 5, counts
    assert set(chapter_names()) == set(LISTS) | set(claims.CHAPTERS_WITHOUT_LIST)


def test_no_claim_rests_on_a_stopwatch_alone():
    """Checks that depend on the machine's speed are run, and not required to hold."""
    tests = ast.parse((DOCS.parent / "tests/school/lab/test_experiments.py").read_text("utf-8"))
    (timed,) = [
        ast.literal_eval(node.value)
        for node in tests.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TIMED"
    ]
    timings = {f"experiment:{name}.{check}" for name, checks in timed.items() for check in checks}
    assert "experiment:lstm.speed" in timings
    alone = [s.says for found in LISTS.values() for s in found if s.by and set(s.by) <= timings]
    assert alone == []


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("One. Two? *Three!* Four:", ["One.", "Two?", "Three!", "Four:"]),
        ("Ba et al. 2016 did. `a. b` is code.", ["Ba et al. 2016 did.", "a. b is code."]),
        ("It is NaN. The rest is not.", ["It is NaN.", "The rest is not."]),
        ('He said "mostly." Then he left.', ['He said "mostly."', "Then he left."]),
        ("Values are 12.5 and 30.8.", ["Values are 12.5 and 30.8."]),
        ("**Look.** `near` is $x. y$.", ["Look.", "near is x. y."]),
    ],
)
def test_lines_are_split_into_sentences(line, sentences):
    assert claims.split_sentences(read_line(line)) == sentences


@pytest.mark.parametrize(
    ("carrier", "problem"),
    [
        ("test:tests/layers/test_norm.py::test_nothing", "has no function test_nothing"),
        ("test:tests/nowhere.py::test_rms_norm_is_torchs", "nowhere.py has no function"),
        ("test:docs/claims.py::main", "has no function main"),
        ("snippet:0", "chapter why has 4 snippets"),
        ("snippet:5", "chapter why has 4 snippets"),
        ("experiment:scale.song", "experiment scale has no check song"),
        ("experiment:song.gradient", "experiment song has no check gradient"),
        ("exercise:song", "no exercise song"),
        ("reference:Nobody 2017", "Nobody 2017 is not in the reading list"),
        ("hearsay:somebody", "a carrier is a test, snippet, experiment, exercise or reference"),
    ],
)
def test_a_carrier_that_does_not_exist_is_named(carrier, problem):
    assert problem in claims.find_problem(carrier, "why")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("share one row.", "share two rows.", "not listed: They are static"),
        ("share one row.", "share two rows.", "not in the chapter: They are static"),
        ('by = ["snippet:1"]', "", "needs either `by` or one of definition"),
        ('by = ["snippet:1"]', 'kind = "song"', "needs either `by` or one of definition"),
        ('by = ["snippet:1"]', 'by = ["snippet:9"]', "snippet:9: chapter why has 4 snippets"),
    ],
)
def test_a_list_that_does_not_fit_its_chapter_is_refused(tmp_path, monkeypatch, old, new, problem):
    text = (DOCS / "claims/01-why.toml").read_text("utf-8")
    assert old in text
    (tmp_path / "01-why.toml").write_text(text.replace(old, new, 1), "utf-8")
    monkeypatch.setitem(claims.find_problems.__globals__, "LISTS", tmp_path)
    found = list(claims.find_problems())
    assert any(problem in line for line in found)
    assert "masks: no file in docs/claims" in found


def test_a_list_follows_its_chapter_and_keeps_what_was_classed(tmp_path, monkeypatch):
    text = (DOCS / "claims/01-why.toml").read_text("utf-8")
    first, second, *rest = text.split("\n\n")
    (tmp_path / "01-why.toml").write_text("\n\n".join([first, *rest]), "utf-8")
    monkeypatch.setitem(claims.find_problems.__globals__, "LISTS", tmp_path)
    assert claims.write_list("why").name == "01-why.toml"
    begun = (tmp_path / "01-why.toml").read_text("utf-8")
    says = second.split("\n")[1]
    assert begun == text.replace(second, f"[[sentence]]\n{says}\nby = []")
    (problem,) = [line for line in claims.find_problems() if line.startswith("why")]
    assert "needs either `by` or one of" in problem
    assert claims.write_list("masks").name == "05-masks.toml"
    masks = claims.read_list(tmp_path / "05-masks.toml")
    assert [each.says for each in masks] == claims.read_sentences("masks")


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_written_as_the_program_writes_them(name, tmp_path, monkeypatch):
    file = claims.listed_chapters()[name]
    text = file.read_text("utf-8")
    (tmp_path / file.name).write_text(text, "utf-8")
    monkeypatch.setitem(claims.find_problems.__globals__, "LISTS", tmp_path)
    assert claims.write_list(name).read_text("utf-8") == text
