"""Corpora: what is in them, what is wrong with them, and on which line."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError, DataError
from glassformer.text import Corpus, CorpusReport, Example, read_lines, read_pairs


def examples(corpus: Corpus) -> tuple[list[Example], CorpusReport]:
    report = CorpusReport()
    return list(corpus.examples(report)), report


def texts(corpus: Corpus) -> list[tuple[str, ...]]:
    return [example.texts for example in examples(corpus)[0]]


def places(report: CorpusReport, kind: str) -> list[int]:
    return [line for _, line in report.problems[kind].places]


@pytest.fixture
def poem(tmp_path: Path) -> Path:
    path = tmp_path / "poem.txt"
    path.write_text("one\ntwo\n\n\nthree\n  \nfour\nfive", encoding="utf-8")
    return path


def test_lines(poem: Path) -> None:
    found, report = read_lines(poem)
    assert found == ["one", "two", "three", "four", "five"]
    assert (report.n_lines, report.n_kept, report.n_bad) == (8, 5, 0)
    assert places(report, "blank") == [3, 4, 6]


def test_documents_between_blank_lines(poem: Path) -> None:
    found, report = examples(Corpus(files=poem, format="documents"))
    assert [e.texts[0] for e in found] == ["one\ntwo", "three", "four\nfive"]
    assert [e.line for e in found] == [1, 5, 7]
    assert report.n_kept == 3 and not report.problems


def test_a_file_is_a_document(poem: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("six\n")
    corpus = Corpus(files=[poem, tmp_path / "other.txt"], format="file")
    assert texts(corpus) == [("one\ntwo\n\n\nthree\n  \nfour\nfive",), ("six",)]


@given(text=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\ufeff\0")))
def test_a_stream_is_the_text_itself(text: str, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("stream") / "text"
    path.write_bytes((text + "x").encode())
    found = texts(Corpus(files=path, format="stream"))
    assert "".join(part for (part,) in found) == text + "x"


def test_what_ends_a_line(tmp_path: Path) -> None:
    """Only line feeds: files that belong together must keep step."""
    (tmp_path / "a").write_bytes("\ufeffone\u2028still\x0bone\x85\x0c\r\ntwo\r\n".encode())
    (tmp_path / "b").write_bytes(b"eins\nzwei")
    pairs, _ = read_pairs(tmp_path / "a", tmp_path / "b")
    assert pairs == [("one\u2028still\x0bone\x85\x0c", "eins"), ("two", "zwei")]


def test_pairs_leave_out_both_sides(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n\nthree\nf\xffur\nfive\n" + b"x\n" * 95)
    (tmp_path / "b").write_bytes(b"eins\nzwei\n \nvi\xffr\nf\xc3\xbcnf\n" + b"y\n" * 95)
    pairs, report = read_pairs(tmp_path / "a", tmp_path / "b")
    assert pairs[:2] == [("one", "eins"), ("five", "fünf")] and len(pairs) == 97
    assert (report.n_lines, report.n_kept, report.n_bad) == (100, 97, 3)
    assert report.problems["empty"].places == [(str(tmp_path / "a"), 2), (str(tmp_path / "b"), 3)]
    assert report.problems["bad UTF-8"].places == [(str(tmp_path / n), 4) for n in "ab"]


DAMAGE = st.sampled_from(["good", "bad UTF-8", "empty", "too long"])


@given(sides=st.lists(st.tuples(DAMAGE, DAMAGE), min_size=1, max_size=60))
def test_every_damage_is_told_with_its_line(sides: list, tmp_path_factory) -> None:
    raw = {"good": b"good", "bad UTF-8": b"b\xe6\x88d", "empty": b"\t", "too long": b"long" * 3}
    folder = tmp_path_factory.mktemp("aligned")
    for name, side in zip("ab", zip(*sides, strict=True), strict=True):
        (folder / name).write_bytes(b"".join(raw[kind] + b"\n" for kind in side))
    corpus = Corpus(
        files=[folder / "a", folder / "b"], format="aligned", max_chars=10, most_bad=1.0
    )
    report, found = CorpusReport(), []
    try:
        for example in corpus.examples(report):
            found.append(example.line)
    except DataError:
        assert not found
    good = [i for i, side in enumerate(sides, 1) if side == ("good", "good")]
    assert found == good and report.n_kept == len(good)
    assert report.n_bad == len(sides) - len(good)
    for kind in ("bad UTF-8", "too long"):
        expected = [i for i, side in enumerate(sides, 1) for each in side if each == kind]
        assert report.count(kind) == len(expected)
        if expected:
            assert places(report, kind) == expected[:20]
    # Where a side cannot be read at all, that is what is told of the line.
    readable = [(i, side) for i, side in enumerate(sides, 1) if {*side} <= {"good", "empty"}]
    expected = [i for i, side in readable for each in side if each == "empty"]
    assert report.count("empty") == len(expected)


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\tpos\n" * 60 + "lonely\n\nc\t\tneg\nd\te\tneg\n", encoding="utf-8")
    found, report = examples(Corpus(files=path, format="tsv", columns=(2, 1), label=3))
    assert found[0] == Example(("b", "a"), "pos", 1, path)
    assert found[-1] == Example(("e", "d"), "neg", 64, path)
    assert (report.n_lines, report.n_kept, report.n_bad) == (64, 61, 3)
    assert places(report, "missing column") == [61] and places(report, "empty") == [62, 63]


def test_tables_with_names(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("id\ttext\n1\tone\n2\ttwo\n", encoding="utf-8")
    corpus = Corpus(files=path, format="tsv", columns=("text",), label="id", header=True)
    found, report = examples(corpus)
    assert [(e.texts, e.label, e.line) for e in found] == [(("one",), "1", 2), (("two",), "2", 3)]
    assert report.n_lines == 2


def test_json_lines(tmp_path: Path) -> None:
    rows = [{"translation": {"en": "cat", "fr": "chat"}, "n": 3, "a.b": "dotted"}] * 100
    lines = [json.dumps(row) for row in rows]
    lines[1] = '{"translation": {"en": "cat"'
    lines[2] = '{"translation": {"en": "cat"}}'
    lines[3] = '{"translation": {"en": "\\ud800", "fr": "x"}, "n": 1}'
    lines[4] = "[" * 100_000
    lines[5] = '["cat", "chat"]'
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    names = ("translation.en", "translation.fr")
    found, report = examples(Corpus(files=path, format="jsonl", columns=names, label="n"))
    assert found[0] == Example(("cat", "chat"), "3", 1, path) and len(found) == 95
    assert places(report, "invalid JSON") == [2, 5]
    assert places(report, "missing field") == [3, 6]
    assert places(report, "bad UTF-8") == [4]
    assert texts(Corpus(files=path, format="jsonl", columns=("a.b",)))[0] == ("dotted",)


def test_long_documents_are_told_by_their_first_line(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("ab\ncd\n\n" + "ab\ncde\n\n" + "x\n\n" * 40)
    found, report = examples(Corpus(files=path, format="documents", max_chars=5))
    assert [e.texts[0] for e in found] == ["ab\ncd"] + ["x"] * 40
    assert places(report, "too long") == [4]


def test_several_files_count_their_own_lines(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"good\n" * 30 + b"\xff\n")
    found, report = examples(Corpus(files=[tmp_path / "a", tmp_path / "b"]))
    assert len(found) == 60
    assert report.problems["bad UTF-8"].places == [(str(tmp_path / n), 31) for n in "ab"]


def test_a_report_is_read_back_and_read() -> None:
    report = CorpusReport(n_lines=100, n_kept=70)
    for line in range(1, 31):
        report.reject(line, ("empty", Path("a")))
    report.note("blank", Path("b"), 7)
    again = CorpusReport.from_dict(json.loads(json.dumps(report.as_dict())))
    assert again == report and again.n_bad == 30
    shown = str(report)
    assert "70 examples of 100 lines" in shown and "1 blank: b line 7" in shown
    assert "30 empty: a lines 1, 2, " in shown and "20, …" in shown and "21" not in shown


@pytest.mark.plain
def test_a_corpus_with_too_many_problems(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"good\n" * 17 + b"\xff\xfe\n" * 2 + b"x" * 50 + b"\n")
    sentence = (
        r"At most 5% of the lines may be bad; 3 of 20 are: 2 bad UTF-8 \(.*t lines 18, 19\); "
        r"1 too long \(.*t line 20\)"
    )
    with pytest.raises(DataError, match=sentence):
        examples(Corpus(files=path, max_chars=30))
    assert len(examples(Corpus(files=path, max_chars=30, most_bad=0.15))[0]) == 17
    path.write_bytes(b"\n\n")
    with pytest.raises(DataError, match=r"at least one example; 2 lines gave 0"):
        read_lines(path)


@pytest.mark.plain
@pytest.mark.parametrize(("a", "b", "line"), [(3, 5, 4), (5, 4, 5), (0, 1, 1)])
def test_files_that_do_not_keep_step(a: int, b: int, line: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n" * a)
    (tmp_path / "b").write_text("y\n" * b)
    sentence = rf"a has {a}, .*b has {b}, so they diverge at line {line} or before"
    with pytest.raises(DataError, match=sentence):
        read_pairs(tmp_path / "a", tmp_path / "b")


@pytest.mark.plain
def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.txt cannot be read: No such file"):
        read_lines(tmp_path / "none.txt")
    with pytest.raises(DataError, match=r"cannot be read: Is a directory"):
        read_lines(tmp_path)
    (tmp_path / "t.tsv").write_text("id\ttext\n1\tone\n")
    corpus = Corpus(files=tmp_path / "t.tsv", format="tsv", columns=("txt",), header=True)
    with pytest.raises(DataError, match=r"must have the column 'txt' in line 1; it has id, text"):
        examples(corpus)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"format": "csv"}, r"format must be one of lines, documents.*got 'csv'"),
        ({"files": ()}, r"at least one file; got none"),
        ({"columns": (1,)}, r"Plain text has no columns; got \(1,\) for 'lines'"),
        ({"format": "tsv"}, r"'tsv' corpus needs columns; got none. Try columns=\(1"),
        ({"format": "jsonl"}, r"'jsonl' corpus needs columns.*columns=\('text',\)"),
        (
            {"format": "tsv", "columns": ("en",)},
            r"Without a header, columns are numbers from 1; got 'en'",
        ),
        ({"format": "tsv", "columns": (0,)}, r"numbered from 1; got 0"),
        ({"format": "aligned", "columns": (1, 3)}, r"numbered from 1 to 2; got 3"),
        ({"max_chars": 0}, r"max_chars must be at least 1.*max_chars=0"),
        ({"most_bad": 1.5}, r"most_bad between 0 and 1; got .*most_bad=1.5"),
    ],
)
def test_corpora_that_cannot_be(settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Corpus(**{"files": ("a", "b"), **settings})


@pytest.mark.plain
@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-32", "UTF-32"),
    ],
)
def test_text_of_another_width_is_refused(encoding: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Une phrase, and another.\nOne more.\n".encode(encoding))
    with pytest.raises(DataError, match=rf"a.txt must be UTF-8 text; it is {name}. Convert it"):
        read_lines(tmp_path / "a.txt")


@pytest.mark.plain
def test_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(64)) * 40 + bytes(200))
    with pytest.raises(DataError, match=r"a.png must be UTF-8 text; it contains null characters"):
        read_lines(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(DataError, match=r"pipe.txt cannot be read: it is not a regular file"):
        read_lines(tmp_path / "pipe.txt")
    with pytest.raises(DataError, match=r"must not contain null characters"):
        read_lines("a\0b")


def test_a_null_character_costs_its_line(tmp_path: Path) -> None:
    lines = [f"line {i}" for i in range(1000)]
    (tmp_path / "a.txt").write_text("\n".join([*lines[:500], "wr\0ng", *lines[500:]]))
    found, report = read_lines(tmp_path / "a.txt")
    assert found == lines
    assert report.count("null character") == 1
