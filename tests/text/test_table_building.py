"""From a corpus to tokens on the disk: rows in order, built once, in bounded memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.errors import ConfigError, DataError
from glassformer.text import Built, Corpus, Encoding, Tokenizer, build_table, learn_tokenizer


@pytest.fixture
def pairs(tmp_path: Path) -> Corpus:
    (tmp_path / "a").write_text("".join(f"{'a ' * (i % 5 + 1)}\n" for i in range(50)))
    (tmp_path / "b").write_text("".join(f"{'b ' * (i % 3 + 1)}\n" for i in range(50)))
    return Corpus(files=(tmp_path / "a", tmp_path / "b"), format="aligned")


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return learn_tokenizer(["a b c"], "words", around="end", extra=("<zh>",))[0]


def build(path: Path, corpus: Corpus, tokenizer: Tokenizer, **settings) -> Built:
    names = ("source", "target")[: corpus.n_texts]
    columns = {name: Encoding(tokenizer=tokenizer) for name in names}
    return build_table(path / "t.tokens", corpus, columns, **settings)


def test_rows_in_order(pairs: Corpus, words: Tokenizer, tmp_path: Path) -> None:
    built = build(tmp_path, pairs, words)
    assert len(built.table) == 50 and built.report.n_kept == 50 and built.labels == ()
    for i in range(50):
        source, target = built.table[i]
        assert source.tolist() == words.encode("a " * (i % 5 + 1))
        assert target.tolist() == words.encode("b " * (i % 3 + 1))


def test_tokens_before_and_after(pairs: Corpus, words: Tokenizer, tmp_path: Path) -> None:
    chinese = words.id_of("<zh>")
    columns = {
        "source": Encoding(tokenizer=words, before=(chinese,)),
        "target": Encoding(tokenizer=words, add_special=False, after=(7,)),
    }
    table = build_table(tmp_path / "t", pairs, columns).table
    assert table.columns["source"][1].tolist() == [chinese, *words.encode("a a")]
    assert table.columns["target"][1].tolist() == [*words.encode("b b", add_special=False), 7]


def test_built_once(pairs: Corpus, words: Tokenizer, tmp_path: Path) -> None:
    first = build(tmp_path, pairs, words)
    again = build(tmp_path, pairs, words)
    assert (first.reused, again.reused) == (False, True)
    assert "did not exist" in first.why and "from the same files" in again.why
    assert again.report == first.report
    assert (again.table.lengths == first.table.lengths).all()


def test_built_again_when_something_changed(
    pairs: Corpus, words: Tokenizer, tmp_path: Path
) -> None:
    build(tmp_path, pairs, words)
    path = pairs.paths[0]
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    changed = build(tmp_path, pairs, words)
    assert not changed.reused and "The files of" in changed.why
    other, _ = learn_tokenizer(["a b d"], "words", around="end")
    changed = build(tmp_path, pairs, other)
    assert not changed.reused and "The tokenizers of" in changed.why
    changed = build(tmp_path, pairs, other, max_tokens=6, labels=None)
    assert not changed.reused and "The settings of" in changed.why
    raw = bytearray((tmp_path / "t.tokens").read_bytes())
    raw[-1] ^= 1
    (tmp_path / "t.tokens").write_bytes(raw)
    changed = build(tmp_path, pairs, other, max_tokens=6)
    assert not changed.reused and "is damaged" in changed.why
    assert build(tmp_path, pairs, other, max_tokens=6).reused


def test_long_sequences_are_left_out_and_told(words: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a b\n" * 39 + "a b c\n")
    built = build(tmp_path, Corpus(files=tmp_path / "a"), words, max_tokens=3)
    assert len(built.table) == built.report.n_kept == 39
    assert built.report.problems["too long"].places == [(str(tmp_path / "a"), 40)]


def test_classes(words: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("good\ta\nbad\tb\n" * 20 + "odd\tc\n")
    corpus = Corpus(files=tmp_path / "a", format="tsv", columns=(2,), label=1)
    built = build(tmp_path, corpus, words)
    assert built.labels == ("good", "bad", "odd")
    assert built.table.columns["label"].tokens.tolist() == [0, 1] * 20 + [2]
    given = build(tmp_path, corpus, words, labels=("bad", "good"))
    assert given.labels == ("bad", "good") and given.table[0][1].tolist() == [1]
    assert given.report.problems["unknown label"].places == [(str(tmp_path / "a"), 41)]
    assert given.report.n_kept == len(given.table) == 40


def test_a_stream_of_characters_is_the_text(tmp_path: Path) -> None:
    text = "To be,\n\nor not to be\n"
    (tmp_path / "a").write_text(text)
    corpus = Corpus(files=tmp_path / "a", format="stream")
    tokenizer, _ = learn_tokenizer([text], "characters")
    built = build(tmp_path, corpus, tokenizer)
    assert tokenizer.decode(built.table.columns["source"].tokens.tolist()) == text


PROGRAM = """
import sys
from pathlib import Path
from glassformer.text import Corpus, Encoding, build_table, learn_tokenizer

folder = Path(sys.argv[1])
line = "the cat sat on the mat and the dog lay on the log until the night came over the hill\\n"
tokenizer, _ = learn_tokenizer([line], "byte-bpe", 270)
field = lambda name: next(
    int(x.split()[1]) for x in Path("/proc/self/status").open() if x.startswith(name)
)

def grown(n_lines):
    path = folder / f"{n_lines}.txt"
    with path.open("w") as file:
        file.writelines(line for _ in range(n_lines))
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    before = field("VmRSS")
    built = build_table(folder / "t", Corpus(files=path), {"text": Encoding(tokenizer=tokenizer)})
    assert len(built.table) == n_lines
    return field("VmHWM") - before  # KiB

print(grown(4_000), grown(4_000), grown(60_000))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """Five megabytes of text are two million tokens: kept in lists they would take 60 MiB."""
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    _, small, large = map(int, run.stdout.split())
    assert large < small + 24 * 1024


@pytest.mark.plain
def test_corpora_that_are_refused(words: Tokenizer, tmp_path: Path, pairs: Corpus) -> None:
    encoding = Encoding(tokenizer=words)
    with pytest.raises(
        ConfigError, match=r"Each of the 2 texts of an example needs a column.*got text"
    ):
        build_table(tmp_path / "t", pairs, {"text": encoding})
    with pytest.raises(ConfigError, match=r"none may be called label; got text, label"):
        build_table(tmp_path / "t", pairs, {"text": encoding, "label": encoding})
    with pytest.raises(DataError, match=r"46 of 50 are: 46 too long"):
        build(tmp_path, pairs, words, max_tokens=2)
    with pytest.raises(DataError, match=r"none cannot be read: No such file"):
        build(tmp_path, Corpus(files=tmp_path / "none"), words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_file_that_is_no_store_is_left_alone(
    pairs: Corpus, words: Tokenizer, tmp_path: Path
) -> None:
    (tmp_path / "t.tokens").write_bytes(b"something else")
    with pytest.raises(DataError, match=r"exists and glassformer did not write it"):
        build(tmp_path, pairs, words)
    assert (tmp_path / "t.tokens").read_bytes() == b"something else"
