"""What chapter 17 says without printing it."""

import unicodedata
from importlib.resources import files

import glassformer as gf
from glassformer.school.learn.merges import learn_merges


def test_the_picture_leaves_single_pairs_alone():
    found = learn_merges("abcd efgh abxy", 20)
    assert len(found.merges) == 1 and found.merges[0].count == 2


def test_the_order_of_merges_matters():
    def encode(word, merges):
        pieces = list(word)
        for pair in merges:
            i = 0
            while i < len(pieces) - 1:
                if (pieces[i], pieces[i + 1]) == pair:
                    pieces[i : i + 2] = ["".join(pair)]
                i += 1
        return pieces

    merges = [("a", "b"), ("b", "c")]
    assert encode("abc", merges) == ["ab", "c"]
    assert encode("abc", merges[::-1]) == ["a", "bc"]


def test_the_reader_takes_the_longest_piece():
    tokenizer = gf.load("reader").tokenizer
    known = {tokenizer.piece(i) for i in range(tokenizer.vocab_size)}
    for word in ("unhappiness", "tokenization", "whales", "understanding"):
        rest, expected = word, []
        while rest:
            mark = "##" if expected else ""
            n = max(n for n in range(1, len(rest) + 1) if mark + rest[:n] in known)
            expected.append(mark + rest[:n])
            rest = rest[n:]
        ids = tokenizer.encode(word, add_special=False)
        assert [tokenizer.piece(i) for i in ids] == expected


def test_both_learned_from_eighteen_books():
    for name in ("writer", "reader"):
        card = files("glassformer.models").joinpath(f"pretrained/{name}/CARD.md").read_text("utf-8")
        assert "Eighteen English books" in card and "Moby Dick" in card
        assert ("Tatoeba" in card) == (name == "reader")
    card = files("glassformer.models").joinpath("pretrained/translator/CARD.md").read_text("utf-8")
    assert "French" in card and "Chinese" in card


def test_characters_and_bytes():
    assigned = (unicodedata.category(chr(i)) for i in range(0x110000))
    assert sum(kind not in ("Cn", "Co", "Cs") for kind in assigned) > 140_000
    assert all(len(chr(i).encode()) == 1 for i in range(128))
    assert all(len(chr(i).encode()) == 3 for i in range(0x4E00, 0x9FFF))
    assert {len(sign.encode()) for sign in "😀🙂🚀🐈🎉"} == {4}


def test_the_reader_knows_no_chinese():
    tokenizer = gf.load("reader").tokenizer
    ids = tokenizer.encode("猫坐在地毯上。", add_special=False)
    assert [tokenizer.piece(i) for i in ids] == ["[UNK]"] * 7


def test_every_token_costs_two_rows_or_one():
    config = gf.load("writer").config
    for tied, rows in ((True, 1), (False, 2)):
        output = config.output.__class__(tied=tied)
        sizes = [
            sum(
                p.numel()
                for p in gf.build(config.replace(vocab_size=n, output=output)).parameters()
            )
            for n in (100, 101)
        ]
        assert sizes[1] - sizes[0] == rows * config.dim
