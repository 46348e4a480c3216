"""The tokenizer in the header of a GGUF file.

Two kinds: "gpt2" lists byte-level pieces and their merges, and names how text is split before;
"llama" lists pieces with scores, where the best-scored pair of neighbours is merged first.
"""

from collections.abc import Callable
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.text.special import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer, Tokenizer

# How text is cut before merging; the regular expressions are those the models were trained with.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}NUMBERS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {
    "gpt-2": None,
    "smollm": None,
    "llama-bpe": _WORDS.replace("NUMBERS", "{1,3}"),
    "qwen2": _WORDS.replace("NUMBERS", ""),
}
_NORMAL, _CONTROL, _USER, _BYTE = 1, 3, 4, 6  # tokenizer.ggml.token_type


def tokenizer_of_header(get: Callable[[str], Any]) -> tuple[Tokenizer, SpecialTokens]:
    """What the header's fields describe; `get` is None where one is missing."""
    kind, pieces = get("tokenizer.ggml.model"), get("tokenizer.ggml.tokens")
    makers = {"gpt2": _byte_level, "llama": _scored}
    if kind not in makers or not pieces:
        raise CheckpointError(
            f"The tokenizer of a GGUF file must be one of {', '.join(makers)}, with its tokens; "
            f"this one is {kind!r}."
        )
    backend = makers[kind](get, pieces)
    types = get("tokenizer.ggml.token_type") or [_NORMAL] * len(pieces)
    control = [p for p, t in zip(pieces, types, strict=True) if t in (_CONTROL, _USER)]
    backend.add_special_tokens(control)
    begin, end = get("tokenizer.ggml.bos_token_id"), get("tokenizer.ggml.eos_token_id")
    if get("tokenizer.ggml.add_bos_token") and begin is not None:
        _put_before(backend, pieces[begin], begin)
    special = SpecialTokens(
        begin=begin, end=() if end is None else (end,), pad=get("tokenizer.ggml.padding_token_id")
    )
    return JsonTokenizer(backend, chat_template=get("tokenizer.chat_template")), special


def _byte_level(get: Callable[[str], Any], pieces: list[str]) -> Any:
    from tokenizers import Regex, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Backend

    split = get("tokenizer.ggml.pre") or "gpt-2"
    if split not in SPLITS:
        raise CheckpointError(
            f"A GGUF file's text must be split as in {', '.join(SPLITS)}; this one says {split!r}."
        )
    merges = [tuple(pair.split(" ", 1)) for pair in get("tokenizer.ggml.merges") or []]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    ignoring = split in ("llama-bpe", "qwen2")  # a word of the vocabulary needs no merges
    backend = Backend(models.BPE(vocabulary, merges, ignore_merges=ignoring))
    pattern = SPLITS[split]
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    if pattern is not None:
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), "isolated"))
    if split == "smollm":
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
    backend.decoder = decoders.ByteLevel()
    return backend


def _scored(get: Callable[[str], Any], pieces: list[str]) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers

    scores = get("tokenizer.ggml.scores")
    if not scores or len(scores) != len(pieces):
        raise CheckpointError("A GGUF file with a llama tokenizer must have a score per token.")
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    unknown = get("tokenizer.ggml.unknown_token_id")
    backend = Backend(
        models.BPE(
            vocabulary,
            _merges(vocabulary, scores),
            unk_token=None if unknown is None else pieces[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaces: list[Any] = [normalizers.Replace(" ", "▁")]
    back: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if get("tokenizer.ggml.add_space_prefix") is not False:
        spaces.insert(0, normalizers.Prepend("▁"))
        back.append(decoders.Strip(" ", 1, 0))
    backend.normalizer = normalizers.Sequence(spaces)
    backend.decoder = decoders.Sequence(back)
    return backend


def _merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Every pair of pieces that makes a piece, the best-scored first."""
    found = [
        (-scores[token], vocabulary[piece[:cut]], vocabulary[piece[cut:]], piece[:cut], piece[cut:])
        for piece, token in vocabulary.items()
        for cut in range(1, len(piece))
        if piece[:cut] in vocabulary and piece[cut:] in vocabulary
    ]
    return [(left, right) for _, _, _, left, right in sorted(found)]


def _put_before(backend: Any, piece: str, token: int) -> None:
    from tokenizers import processors

    backend.post_processor = processors.TemplateProcessing(
        single=f"{piece}:0 $A:0",
        pair=f"{piece}:0 $A:0 {piece}:1 $B:1",
        special_tokens=[(piece, token)],
    )
