"""How tokens read: whole characters, visible blanks, nothing that disturbs a line."""

import pytest
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from glassformer.text.pieces import labels, make_visible
from glassformer.text.tokenizer import JsonTokenizer


def bytewise() -> JsonTokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<end>", special=True)])
    return JsonTokenizer(backend)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ["a", "␣", "b"]),
        ("我爱", ["我", "…", "…", "爱", "…", "…"]),
        ("é🙂", ["é", "…", "🙂", "…", "…", "…"]),
        ("\n\t", ["⏎", "⇥"]),
        ("a<end>", ["a", "<end>"]),
        ("\x07", ["\\x07"]),
        ("", []),
    ],
)
def test_bytes_become_characters(text: str, expected: list[str]) -> None:
    tokenizer = bytewise()
    assert labels(tokenizer, tokenizer.encode(text)) == expected


def test_broken_bytes_are_shown_as_such() -> None:
    tokenizer = bytewise()
    whole = tokenizer.encode("我")
    assert labels(tokenizer, whole[:2]) == ["\\xe6\\x88", "…"]
    assert labels(tokenizer, [*whole[:2], *tokenizer.encode("a")]) == ["\\xe6\\x88", "…", "a"]
    assert labels(tokenizer, whole[1:]) == ["\\x88", "\\x91"]


def test_other_vocabularies_read_as_they_are() -> None:
    words = {"[CLS]": 0, "cat": 1, "##s": 2, "▁sat": 3, "<0xE6>": 4, "<0x88>": 5, "<0x91>": 6}
    tokenizer = JsonTokenizer(Backend(models.WordLevel(words, unk_token="[CLS]")))
    assert labels(tokenizer, range(7)) == ["[CLS]", "cat", "##s", "␣sat", "我", "…", "…"]


def test_what_turns_lines_around_is_escaped() -> None:
    assert make_visible("a\u202eb\u200b") == "a\\u202eb\\u200b"
    assert make_visible("<script>") == "<script>"  # escaping for pages is the page's matter
