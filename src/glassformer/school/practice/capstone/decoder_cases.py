"""Each part of the decoder on activations of the library's model: same input, same result."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from glassformer.school.practice.capstone.joining import join_decoder, load_weights
from glassformer.school.practice.capstone.kit import Kit
from glassformer.school.practice.capstone.translator_cases import (
    Cases,
    compare,
    merge_cases,
    rotary_cases,
    split_cases,
)


def embedding_cases(kit: Kit) -> Cases:
    sizes, rows = kit.sizes, kit.weights["embedding.weight"]

    def embed(m: Any, tokens: Tensor) -> Any:
        # The exercise multiplies by √dim; a decoder does not, so its rows come divided.
        embedding = m.Embedding(sizes.vocab_size, sizes.dim)
        return load_weights(embedding, {"weight": rows / sizes.dim**0.5})(tokens)

    yield compare(embed, {"tokens": kit["tokens"]}, kit["out"], case="activations")


def rms_norm_cases(kit: Kit) -> Cases:
    sizes, weights = kit.sizes, kit.take("decoder.0.attention_norm.")

    def normalize(m: Any, x: Tensor) -> Any:
        return load_weights(m.RMSNorm(sizes.dim, sizes.eps), weights)(x)

    yield compare(normalize, {"x": kit["x"]}, kit["out"], case="activations")


def swiglu_cases(kit: Kit) -> Cases:
    sizes, weights = kit.sizes, kit.take("decoder.0.feed_forward.")

    def apply(m: Any, x: Tensor) -> Any:
        return load_weights(m.SwiGLU(sizes.dim, sizes.hidden_dim), weights)(x)

    yield compare(apply, {"x": kit["x"]}, kit["out"], case="activations")


def grouped_cases(kit: Kit) -> Cases:
    yield compare(
        lambda m, q, k, v: m.grouped_attention(q, k, v),
        {"q": kit["q"], "k": kit["k"], "v": kit["v"]},
        kit["out"],
        case="activations",
    )


def joint_cases(kit: Kit) -> Cases:
    sizes = kit.sizes
    cache = (kit["k"], kit["v"])
    position = cache[0].shape[2]

    def run_block(m: Any, x: Tensor) -> Any:
        block = load_weights(m.Block(kit.lent, sizes), kit.take("decoder.0."))
        return block(x, position, cache)[0]

    def run_model(m: Any, tokens: Tensor) -> Any:
        joint = {name: getattr(m, name) for name in ("Block", "Writer")}
        model = join_decoder(SimpleNamespace(**{**vars(kit.lent), **joint}), kit)
        caches: Any = [None] * sizes.n_layers
        logits = None
        for place, token in enumerate(tokens[0]):
            logits, caches = model(token.view(1, 1), place, caches)
        return logits

    yield compare(run_block, {"x": kit["x"]}, kit["out"], case="block")
    given = {"tokens": kit["tokens"]}
    yield compare(run_model, given, kit["logits"], "logits", case="logits")


def sampling_cases(kit: Kit) -> Cases:
    temperature, top_k = kit.settings["temperature"], kit.settings["top_k"]
    yield compare(
        lambda m, logits: m.probabilities(logits, temperature, top_k),
        {"logits": kit["logits"]},
        kit["out"],
        "probabilities",
        case="activations",
        tolerance=1e-6,  # most of them are small
    )


DECODER_CASES: dict[str, Callable[[Kit], Cases]] = {
    "split_heads": split_cases,
    "merge_heads": merge_cases,
    "embedding": embedding_cases,
    "sampling": sampling_cases,
    "rotary": rotary_cases,
    "grouped_queries": grouped_cases,
    "rms_norm": rms_norm_cases,
    "swiglu": swiglu_cases,
    "capstone_writer": joint_cases,
}
