"""Books: what is cut off, what becomes a line, and where they are split."""

import importlib
import io
import json
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from glassformer.errors import DataError
from glassformer.text import Corpus, CorpusReport

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "data"))
gutenberg: ModuleType = importlib.import_module("gutenberg")


def chapter(i: int) -> str:
    prose = f"It was day {i}, and\r\nnobody  knew _why_--or  how.\r\n\r\n" * 30
    return f"CHAPTER {i}\r\n\r\n\r\n{prose}\r\n"


NOVEL = "[A Novel by Ann 1900]\r\n\r\n" + "".join(map(chapter, range(1, 31)))
NOVEL += (
    "End of Project Gutenberg's A Novel\r\n\r\n*** START**THE SMALL PRINT! You know: lawyers.\r\n"
)
POEMS = "*** START OF THE PROJECT GUTENBERG EBOOK ***\n"
POEMS += "\nTiger, tiger,\nBurning caf\xe9\n    so bright\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "books.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (
            ("package/gutenberg/novel.txt", NOVEL.encode()),
            ("package/gutenberg/poems.txt", POEMS.encode("latin-1")),
            ("package/gutenberg/README", b"Give Away One Trillion Etext Files"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def texts(path: Path) -> list[str]:
    corpus = Corpus(files=(path,), format="documents")
    return [example.texts[0] for example in corpus.examples(CorpusReport())]


def test_chapters_become_documents_of_one_line_a_paragraph(package: Path, tmp_path: Path) -> None:
    told = gutenberg.prepare(package, tmp_path / "out")
    train, valid = (texts(tmp_path / "out" / f"{part}.txt") for part in ("train", "valid"))
    assert told["train"]["documents"] == len(train) == 29
    assert told["valid"]["documents"] == len(valid) == 2
    assert train[0].split("\n")[:2] == ["CHAPTER 1", "It was day 1, and nobody knew why—or how."]
    assert train[-1] == "Tiger, tiger,\nBurning café so bright"
    assert [text.split("\n")[0] for text in valid] == ["CHAPTER 6", "CHAPTER 26"]
    assert told["books"]["novel"]["title"] == "A Novel by Ann 1900"


def test_no_licence_is_left_and_no_chapter_is_in_both_parts(package: Path, tmp_path: Path) -> None:
    gutenberg.prepare(package, tmp_path / "out")
    train, valid = (texts(tmp_path / "out" / f"{part}.txt") for part in ("train", "valid"))
    assert not set(train) & set(valid)
    whole = "\n".join([*train, *valid]).lower()
    for word in ("gutenberg", "lawyers", "etext", "small print", "1900"):
        assert word not in whole
    assert sum(f"day {i}, " in whole for i in range(1, 31)) == 30


def test_a_folder_gives_the_same_texts_as_its_package(package: Path, tmp_path: Path) -> None:
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path / "folder", filter="data")
    gutenberg.prepare(package, tmp_path / "one")
    gutenberg.prepare(tmp_path / "folder", tmp_path / "two")
    files = [
        json.loads((tmp_path / n / "summary.json").read_text())["files"] for n in ("one", "two")
    ]
    assert files[0] == files[1] and set(files[0]) == {"train.txt", "valid.txt"}


def test_a_book_can_be_left_out(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert gutenberg.main([str(package), "--out", out, "--without", "novel"]) == 0
    assert list(json.loads(capsys.readouterr().out)["books"]) == ["poems"]
    assert gutenberg.main([str(package), "--out", out, "--without", "emma"]) == 2
    assert "'emma' is none of novel, poems." in capsys.readouterr().err


def test_a_long_poem_is_cut_between_its_lines() -> None:
    poem = "\n".join(f"Line {i} of a very long poem" for i in range(2000))
    parts = gutenberg.documents(poem)
    assert len(parts) == 3
    assert [line for part in parts for line in part] == poem.split("\n")
    assert all(sum(map(len, part)) <= gutenberg.MOST for part in parts)


def test_a_short_chapter_stays_with_the_next() -> None:
    assert len(gutenberg.documents("I\n\nShort.\n\nII\n\nShort, too.")) == 1
    long = "It was long. " * 100
    assert len(gutenberg.documents(f"I\n\n{long}\n\nII\n\n{long}")) == 2


@pytest.mark.parametrize(
    ("line", "is_heading"),
    [
        ("CHAPTER IV. Of Whales", True),
        ("}  One's-Self I Sing", True),
        ("XII. THE END OF IT", True),
        ("THE ORPHANS.", True),
        ("Actus Primus. Scoena Prima.", True),
        ("I saw him.", False),
        ("He read the book.", False),
    ],
)
def test_headings(line: str, is_heading: bool) -> None:
    assert [found for found, _ in gutenberg.paragraphs(line)] == [is_heading]


def test_what_holds_no_books_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must hold books in \.txt; it holds none"):
        list(gutenberg.books(tmp_path))
    (tmp_path / "no.tgz").write_bytes(b"no")
    with pytest.raises(DataError, match="must be a folder or a packed one"):
        list(gutenberg.books(tmp_path / "no.tgz"))
