"""New tokenizers: what they write they read, the same lines give the same file, tokens around."""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError, DataError
from glassformer.text import SpecialTokens, Tokenizer, learn_tokenizer, read_tokenizer
from glassformer.text.pieces import labels

LINES = [
    "The cat sat on the mat.",
    "The dog sat on the log, and the cat did not.",
    "猫坐在垫子上。狗坐在木头上。",
    "Le chat est assis sur le tapis; où est le chien ?",
] * 5
SIZES = {"byte-bpe": 330, "bpe": 400, "wordpiece": 200, "characters": None, "words": None}
SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")

readable = st.text(st.characters(exclude_categories=("Cs",)), max_size=40).filter(
    lambda text: not any(piece in text for piece in SPECIAL)
)


def learnt(kind: str, **settings) -> tuple[Tokenizer, SpecialTokens]:
    return learn_tokenizer(LINES, kind, SIZES[kind], **settings)


@pytest.fixture(scope="module")
def bytewise() -> Tokenizer:
    return learnt("byte-bpe", around="both")[0]


@pytest.fixture(scope="module")
def metaspace() -> Tokenizer:
    return learnt("bpe", around="both")[0]


@given(text=readable)
def test_bytes_lose_nothing(bytewise: Tokenizer, text: str) -> None:
    assert bytewise.decode(bytewise.encode(text)) == text


@given(text=readable)
def test_bytes_of_rare_characters_lose_nothing(metaspace: Tokenizer, text: str) -> None:
    """Metaspace BPE cannot tell a blank from its own sign, nor a first blank from none."""
    text = text.replace("▁", "").removeprefix(" ")
    assert metaspace.decode(metaspace.encode(text)) == text


@given(texts=st.lists(readable, max_size=4))
@pytest.mark.parametrize("add_special", [True, False])
def test_many_texts_are_encoded_as_one_by_one(
    bytewise: Tokenizer, texts: list[str], add_special: bool
) -> None:
    one_by_one = [bytewise.encode(text, add_special=add_special) for text in texts]
    assert bytewise.encode_many(texts, add_special=add_special) == one_by_one


@pytest.mark.parametrize("kind", SIZES)
def test_the_lines_themselves_come_back(kind: str) -> None:
    tokenizer, _ = learnt(kind)
    for line in LINES[:2]:
        assert tokenizer.decode(tokenizer.encode(line)) == line


@pytest.mark.parametrize("kind", SIZES)
def test_a_saved_tokenizer_is_the_same(kind: str, tmp_path: Path) -> None:
    tokenizer, _ = learnt(kind, around="end", extra=("<zh>",))
    for name, content in tokenizer.files().items():
        (tmp_path / name).write_bytes(content)
    again = read_tokenizer(tmp_path)
    assert again.files() == tokenizer.files()
    for line in LINES[:4]:
        assert again.encode(line) == tokenizer.encode(line)
        assert again.decode(again.encode(line)) == tokenizer.decode(tokenizer.encode(line))


@pytest.mark.parametrize("kind", SIZES)
def test_an_iterator_gives_what_a_list_gives(kind: str) -> None:
    from_iterator, _ = learn_tokenizer(iter(LINES), kind, SIZES[kind])
    assert from_iterator.files() == learnt(kind)[0].files()


PROGRAM = """
import hashlib
from glassformer.text import learn_tokenizer
lines = [f"{a}{b}{a} {b}{a}é" for a in "qwertyuiop" for b in "asdfghjklmn我你"]  # full of ties
sizes = {"byte-bpe": 300, "bpe": 300, "wordpiece": 60, "characters": None, "words": None}
for kind, size in sizes.items():
    tokenizer, _ = learn_tokenizer(lines, kind, size, around="end")
    print(kind, hashlib.sha256(tokenizer.files()["tokenizer.json"]).hexdigest())
"""


def test_another_process_learns_the_same() -> None:
    command = [sys.executable, "-c", PROGRAM]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.count("\n") == len(SIZES)


@pytest.mark.parametrize(
    ("around", "before", "after"),
    [
        ("none", [], []),
        ("begin", ["<s>"], []),
        ("end", [], ["</s>"]),
        ("both", ["<s>"], ["</s>"]),
        ("class", ["[CLS]"], ["[SEP]"]),
    ],
)
@pytest.mark.parametrize("kind", SIZES)
def test_what_stands_around_a_text(
    kind: str, around: str, before: list[str], after: list[str]
) -> None:
    tokenizer, _ = learnt(kind, around=around)
    bare = tokenizer.encode("The cat", add_special=False)
    pieces = [tokenizer.piece(token) for token in tokenizer.encode("The cat")]
    assert pieces == [*before, *map(tokenizer.piece, bare), *after]
    assert tokenizer.decode(tokenizer.encode("The cat")) == "The cat"


def test_a_translators_special_tokens() -> None:
    _, special = learnt("bpe", around="end")
    assert special == SpecialTokens(pad=0, begin=1, end=(2,), start=(1,), never=(0, 1))


def test_an_encoders_special_tokens() -> None:
    tokenizer, special = learnt("wordpiece", around="class")
    assert special == SpecialTokens(pad=0, mask=4, never=(0, 1, 3, 4))
    assert tokenizer.encode("The [MASK]")[2] == 4
    _, special = learnt("byte-bpe", around="both", roles=("mask",))
    assert special == SpecialTokens(begin=1, end=(2,), pad=0, mask=3, never=(0, 1, 3))


def test_no_special_tokens_but_those_asked_for() -> None:
    assert learnt("byte-bpe")[1] == SpecialTokens()
    assert learnt("byte-bpe", roles=("end",))[1] == SpecialTokens(end=(0,))


@pytest.mark.parametrize("kind", SIZES)
def test_languages_are_pieces(kind: str) -> None:
    tokenizer, _ = learnt(kind, around="end", extra=("<zh>", "<fr>"), lowercase=True)
    chinese = tokenizer.id_of("<zh>")
    assert tokenizer.encode("<zh> the cat")[0] == chinese != tokenizer.id_of("<fr>")
    assert tokenizer.decode(tokenizer.encode("<zh>the cat")).strip() == "the cat"


@pytest.mark.parametrize("kind", ["byte-bpe", "bpe"])
def test_characters_of_several_bytes_are_shown_whole(kind: str) -> None:
    tokenizer, _ = learnt(kind)
    assert labels(tokenizer, tokenizer.encode("🙂齉"))[-7:] == ["🙂", "…", "…", "…", "齉", "…", "…"]
    shown = [label for label in labels(tokenizer, tokenizer.encode("猫在 log")) if label != "…"]
    assert "".join(shown).removeprefix("␣") == "猫在␣log"


def test_pieces_of_words_and_characters_read_as_they_are() -> None:
    tokenizer, _ = learn_tokenizer(["a\nb"], "characters")
    assert labels(tokenizer, tokenizer.encode("b\na")) == ["b", "⏎", "a"]
    tokenizer, _ = learnt("wordpiece")
    assert labels(tokenizer, tokenizer.encode("cats"))[0] == "cat"
    tokenizer, _ = learnt("words")
    assert labels(tokenizer, tokenizer.encode("cat sat zebra")) == ["cat", "sat", "<unk>"]


def test_characters_are_numbered_in_order() -> None:
    tokenizer, special = learn_tokenizer(["ba\n", "c a\n"], "characters")
    assert special == SpecialTokens()
    assert tokenizer.encode("\n abc") == [0, 1, 2, 3, 4] and tokenizer.vocab_size == 5
    assert tokenizer.decode([4, 0, 1, 1]) == "c\n  "


def test_words_by_how_often_they_occur() -> None:
    tokenizer, _ = learn_tokenizer(["b a b", "c b a"], "words", min_count=2)
    assert tokenizer.encode("a b c") == [2, 1, 0]
    tokenizer, _ = learn_tokenizer(["b a b", "c b a"], "words", 2)
    assert tokenizer.encode("a b c") == [0, 1, 0]


def test_parts_of_words_are_joined() -> None:
    line = "un@@ happi@@ ness is rare"
    tokenizer, _ = learn_tokenizer([line], "words", around="end", continued="@@")
    assert tokenizer.decode(tokenizer.encode(line)) == "unhappiness is rare"
    assert tokenizer.decode([]) == ""
    tokenizer, _ = learn_tokenizer([line], "words")
    assert tokenizer.decode(tokenizer.encode(line)) == line


@pytest.mark.parametrize("kind", SIZES)
def test_lower_case(kind: str) -> None:
    tokenizer, _ = learnt(kind, lowercase=True)
    assert tokenizer.encode("THE CAT") == tokenizer.encode("the cat")
    assert tokenizer.decode(tokenizer.encode("OÙ EST")).replace("<unk>", "") == "où est"


@pytest.mark.parametrize("kind", ["byte-bpe", "bpe", "wordpiece"])
def test_a_vocabulary_is_not_larger_than_asked_for(kind: str) -> None:
    assert learnt(kind, around="end", extra=("<x>",))[0].vocab_size <= SIZES[kind]


def test_a_text_is_read_once_and_not_kept() -> None:
    """Ten thousand lines of which at most one is alive."""
    alive = 0

    class Line(str):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    most = 0

    def lines() -> Iterator[str]:
        nonlocal alive, most
        for i in range(10_000):
            alive += 1
            most = max(most, alive)
            yield Line(f"word{i % 7} and word{i % 11}")

    learn_tokenizer(lines(), "words")
    assert most < 10


@pytest.mark.plain
@pytest.mark.parametrize(
    ("kind", "size", "settings", "sentence"),
    [
        ("bpe", None, {}, r"needs a vocab_size; got None. Try vocab_size=8000"),
        ("bpe", 200, {"around": "end"}, r"vocab_size must be above 259.*got vocab_size=200"),
        ("byte-bpe", 256, {}, r"vocab_size must be above 256.*got vocab_size=256"),
        ("characters", 9, {}, r"vocab_size must be None for characters.*got 9"),
        ("sentence", 9, {}, r"kind must be one of byte-bpe, bpe.*got 'sentence'"),
        ("words", None, {"around": "left"}, r"around must be one of none, begin.*got 'left'"),
        ("words", None, {"roles": ("king",)}, r"roles must be one of pad.*got 'king'"),
        ("words", None, {"min_count": 0}, r"min_count must be at least 1; got 0"),
        ("words", None, {"min_count": 99}, r"must occur min_count=99 times; none does"),
        ("words", None, {"extra": ("<s>",)}, r"Extra pieces must be different.*got '<s>'"),
        ("words", None, {"extra": ("<a>", "<a>")}, r"Extra pieces must be.*got '<a>'"),
        ("bpe", 400, {"continued": "@@"}, r"continued='@@' applies only to the kind words"),
    ],
)
def test_wishes_that_cannot_be(kind: str, size: int | None, settings: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        learn_tokenizer(LINES, kind, size, **settings)


@pytest.mark.plain
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("lines", [[], ["", " "]])
def test_nothing_to_learn_from(kind: str, lines: list[str]) -> None:
    for given_lines in (lines, iter(lines)):
        with pytest.raises(ConfigError, match=r"at least one word; the text is empty"):
            learn_tokenizer(given_lines, kind, SIZES[kind])


@pytest.mark.plain
def test_a_character_without_an_id() -> None:
    tokenizer, _ = learn_tokenizer(["abc"], "characters")
    with pytest.raises(DataError, match=r"'é' is not in the vocabulary"):
        tokenizer.encode("abé")
    with pytest.raises(DataError, match=r"'é' is not in the vocabulary"):
        tokenizer.encode_many(["a", "é"])
    with pytest.raises(DataError, match=r"'\\ud800' is not in the vocabulary"):
        tokenizer.encode("a\ud800")


@pytest.mark.parametrize("kind", ["byte-bpe", "bpe", "wordpiece"])
def test_a_word_of_a_megabyte(kind: str) -> None:
    """It is cut in learning, where time would grow with the square of its length."""
    blob = "".join(random.Random(1).choices("abcdefgh", k=1 << 20))
    tokenizer, _ = learn_tokenizer([*TEXT_LINES, blob], kind, 600)
    text = " ".join(TEXT_LINES[:2])
    assert tokenizer.decode(tokenizer.encode(text)).split() == text.split()
    assert "1000" not in tokenizer.files()["tokenizer.json"].decode()  # encoding cuts nothing


@pytest.mark.parametrize("kind", ["byte-bpe", "bpe", "wordpiece"])
def test_words_of_normal_length_are_not_cut(kind: str, monkeypatch) -> None:
    lines = [*TEXT_LINES, "x" * 999]
    limited, _ = learn_tokenizer(lines, kind, 400)
    monkeypatch.setattr("glassformer.text.vocabularies._MOST_WORD", 10**5)
    free, _ = learn_tokenizer(lines, kind, 400)
    assert limited.files() == free.files()


TEXT_LINES = [f"the {n} cats sat on {n} mats." for n in ("one", "two", "three", "four")] * 5
