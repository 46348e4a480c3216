"""Tokenizers through the header of a GGUF file and back: the same ids, the same texts."""

import json

import pytest
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from glassformer.errors import CheckpointError
from glassformer.text import SpecialTokens, learn_tokenizer
from glassformer.text.ggml import SPLITS, build_splitter, tokenizer_of_header
from glassformer.text.ggml_export import header_of_tokenizer
from glassformer.text.tokenizer import JsonTokenizer

LINES = ["the cat sat on the mat", "the cats are on the mats", "12 cats and 345 mats", "naïve café"]
TEXTS = [
    "the cat sat on the mat",
    "  the  cats'll  say 12345\n\nno ",
    "café and cafe\u0301, 猫 👍",
    "<tool>the<s> mat</s> <unk>",
    "",
]


def assert_same(tokenizer: JsonTokenizer, special: SpecialTokens, vocab_size: int) -> dict:
    fields = header_of_tokenizer(tokenizer, special, vocab_size)
    assert len(fields["tokenizer.ggml.tokens"]) == vocab_size
    again, found = tokenizer_of_header(fields)
    assert found == special
    assert again.chat_template == tokenizer.chat_template
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert again.encode(text) == ids
        assert again.encode(text, add_special=False) == tokenizer.encode(text, add_special=False)
        assert again.decode(ids) == tokenizer.decode(ids)
    return fields


def byte_level(split: str) -> JsonTokenizer:
    """A vocabulary as it is published: its added tokens lie beyond those of the model."""
    learned, _ = learn_tokenizer(LINES, "byte-bpe", 300)
    backend = learned.backend
    plain = json.loads(backend.to_str())
    plain["model"]["ignore_merges"] = split == "llama-bpe"
    backend = Backend.from_str(json.dumps(plain))
    backend.pre_tokenizer = build_splitter(split)
    if split == "qwen2":
        backend.normalizer = normalizers.NFC()
    backend.add_special_tokens(["<s>", "</s>"])
    backend.add_tokens([AddedToken("<tool>", normalized=False)])
    return JsonTokenizer(backend, chat_template="{{ messages[0]['content'] }}")


@pytest.mark.parametrize("split", SPLITS)
def test_byte_level_pieces(split: str) -> None:
    tokenizer = byte_level(split)
    begin, end = tokenizer.id_of("<s>"), tokenizer.id_of("</s>")
    special = SpecialTokens(begin=begin, end=(end, 3), pad=end, mask=5, never=(begin,))
    fields = assert_same(tokenizer, special, tokenizer.vocab_size + 7)
    assert fields["tokenizer.ggml.model"] == "gpt2"
    assert fields["tokenizer.ggml.pre"] == split
    assert fields["tokenizer.ggml.add_bos_token"] is False
    assert fields["tokenizer.ggml.token_type"][-8:] == [4, *[5] * 7]
    tokenizer.backend.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", begin)]
            ),
        ]
    )
    fields = assert_same(tokenizer, special, tokenizer.vocab_size)
    assert fields["tokenizer.ggml.add_bos_token"] is True


@pytest.mark.parametrize("around", ["none", "begin"])
def test_vocabularies_that_train_learns(around) -> None:
    tokenizer, special = learn_tokenizer(LINES, "byte-bpe", 290, around=around)
    assert_same(tokenizer, special, 290)


def scored(*, prefix: bool = True) -> JsonTokenizer:
    """As Llama 2's: pieces of characters, and bytes for those that it lacks."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    pieces += [*"abcdehmnorst", "th", "at", "the", "▁the", "▁c", "▁m", "cat", "▁cat", "▁mat"]
    merges = [("t", "h"), ("a", "t"), ("th", "e"), ("▁", "the"), ("▁", "c"), ("▁", "m")]
    merges += [("c", "at"), ("▁", "cat"), ("▁c", "at"), ("▁m", "at")]
    ids = {piece: i for i, piece in enumerate(pieces)}
    backend = Backend(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    replace = normalizers.Replace(" ", "▁")
    first = [normalizers.Prepend("▁")] if prefix else []
    backend.normalizer = normalizers.Sequence([*first, replace])
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    last = [decoders.Strip(" ", 1, 0)] if prefix else []
    backend.decoder = decoders.Sequence([*back, *last])
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return JsonTokenizer(backend)


@pytest.mark.parametrize("prefix", [True, False])
def test_scored_pieces(prefix: bool) -> None:
    tokenizer = scored(prefix=prefix)
    special = SpecialTokens(begin=1, end=(2,))
    fields = assert_same(tokenizer, special, tokenizer.vocab_size)
    assert fields["tokenizer.ggml.model"] == "llama"
    assert fields["tokenizer.ggml.token_type"][:5] == [3, 3, 3, 6, 6]
    assert fields["tokenizer.ggml.unknown_token_id"] == 0


def test_scores_that_are_equal_stay_equal() -> None:
    """Merges of pieces with one score interleave, and come back in the same order."""
    pieces = ["<unk>", "a", "b", "c", "ab", "bc", "abc", "aab"]
    fields = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.scores": [0.0, 0.0, 0.0, 0.0, -1.0, -1.0, -2.0, -2.0],
        "tokenizer.ggml.unknown_token_id": 0,
    }
    tokenizer, special = tokenizer_of_header(fields)
    again, _ = tokenizer_of_header(header_of_tokenizer(tokenizer, special, len(pieces)))
    merges = json.loads(tokenizer.backend.to_str())["model"]["merges"]
    assert merges == [["a", "b"], ["b", "c"], ["a", "ab"], ["a", "bc"], ["ab", "c"]]
    assert json.loads(again.backend.to_str())["model"]["merges"] == merges


def test_a_model_without_a_tokenizer() -> None:
    special = SpecialTokens(begin=0, end=(2,), pad=1)
    fields = header_of_tokenizer(None, special, 7)
    assert tokenizer_of_header(fields) == (None, special)


@pytest.mark.plain
def test_what_a_header_cannot_hold_is_named() -> None:
    none = SpecialTokens()
    words, _ = learn_tokenizer(LINES, "words")
    with pytest.raises(CheckpointError, match=r"byte-level or a scored BPE.*of the kind WordLevel"):
        header_of_tokenizer(words, none, 99)
    tokenizer = byte_level("gpt-2")
    with pytest.raises(CheckpointError, match=r"'.*' of this tokenizer is beyond the 280"):
        header_of_tokenizer(tokenizer, none, 280)
    with pytest.raises(CheckpointError, match=r"at most 3 tokens that end a text.*has 4"):
        header_of_tokenizer(tokenizer, SpecialTokens(end=(1, 2, 3, 4)), 303)
    tokenizer.backend.normalizer = normalizers.Lowercase()
    with pytest.raises(CheckpointError, match=r"no field for its normalizer \(Lowercase\)"):
        header_of_tokenizer(tokenizer, none, 303)
    tokenizer = byte_level("gpt-2")
    tokenizer.backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    with pytest.raises(CheckpointError, match=r"no field for its pre_tokenizer \(ByteLevel\)"):
        header_of_tokenizer(tokenizer, none, 303)
    ended, special = learn_tokenizer(LINES, "byte-bpe", 290, around="both")
    with pytest.raises(CheckpointError, match=r"no field for its post_processor"):
        header_of_tokenizer(ended, special, 290)
