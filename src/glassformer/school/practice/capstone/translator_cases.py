"""Each part of the translator on activations of the library's model: same input, same result."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.capstone.joining import (
    build_translator_parts,
    load_weights,
    translator_parts,
)
from glassformer.school.practice.capstone.kit import Kit
from glassformer.school.practice.cases import Case

# Of what the library's model computes in float32, with sums in another order.
TOLERANCE = 1e-4
Cases = Iterator[Case]


def compare(
    call: Callable[..., Any],
    inputs: dict[str, Any],
    expected: Any,
    *names: str,
    case: str,
    tolerance: float = TOLERANCE,
) -> Case:
    """A case on activations, run without gradients."""

    def run(m: Any, **given: Any) -> Any:
        with torch.no_grad():
            return call(m, **given)

    return Case(case, run, inputs, names or ("out",), tolerance, expected=expected)


def embedding_cases(kit: Kit) -> Cases:
    sizes, weights = kit.sizes, kit.take("embedding.")

    def embed(m: Any, tokens: Tensor) -> Any:
        return load_weights(m.Embedding(sizes.vocab_size, sizes.dim), weights)(tokens)

    yield compare(embed, {"tokens": kit["tokens"]}, kit["out"], case="activations")


def layer_norm_cases(kit: Kit) -> Cases:
    weights = kit.take("encoder.0.attention_norm.")

    def normalize(m: Any, x: Tensor) -> Any:
        return load_weights(m.LayerNorm(x.shape[-1]), weights)(x)

    yield compare(normalize, {"x": kit["x"]}, kit["out"], case="activations")


def feed_forward_cases(kit: Kit) -> Cases:
    sizes, weights = kit.sizes, kit.take("encoder.0.feed_forward.")

    def apply(m: Any, x: Tensor) -> Any:
        return load_weights(m.GELUFeedForward(sizes.dim, sizes.hidden_dim), weights)(x)

    yield compare(apply, {"x": kit["x"]}, kit["out"], case="activations")


def residual_cases(kit: Kit) -> Cases:
    sizes = kit.sizes
    norm = load_weights(nn.LayerNorm(sizes.dim), kit.take("encoder.0.feed_forward_norm."))
    up, down = nn.Linear(sizes.dim, sizes.hidden_dim), nn.Linear(sizes.hidden_dim, sizes.dim)
    load_weights(up, kit.take("encoder.0.feed_forward.up."))
    load_weights(down, kit.take("encoder.0.feed_forward.down."))
    network = nn.Sequential(up, nn.GELU(), down)
    call = lambda m, x: m.pre_norm(x, network, norm)  # noqa: E731
    yield compare(call, {"x": kit["x"]}, kit["out"], case="activations")


def split_cases(kit: Kit) -> Cases:
    n_heads = kit.settings["n_split"]
    call = lambda m, x: m.split_heads(x, n_heads)  # noqa: E731
    yield compare(call, {"x": kit["x"]}, kit["out"], case="activations")


def merge_cases(kit: Kit) -> Cases:
    yield compare(lambda m, x: m.merge_heads(x), {"x": kit["x"]}, kit["out"], case="activations")


def rotary_cases(kit: Kit) -> Cases:
    base = kit.sizes.base
    positions = torch.arange(kit["q"].shape[-2])
    yield compare(
        lambda m, q, k, positions: m.rotary(q, k, positions, base),
        {"q": kit["q"], "k": kit["k"], "positions": positions},
        (kit["q_out"], kit["k_out"]),
        "q",
        "k",
        case="activations",
    )


def attention_cases(kit: Kit) -> Cases:
    for site in ("attention", "cross"):
        q, k, v, mask = (kit[f"{site}.{name}"] for name in ("q", "k", "v", "mask"))
        yield compare(
            lambda m, q, k, v, mask: m.attention(q, k, v, mask)[0],
            {"q": q, "k": k, "v": v, "mask": mask},
            kit[f"{site}.out"],
            case="causal" if site == "attention" else "activations",
        )


def joint_cases(kit: Kit) -> Cases:
    parts, sizes = translator_parts(kit.lent), kit.sizes

    def encode(m: Any, x: Tensor, mask: Tensor) -> Any:
        layer = load_weights(m.EncoderLayer(parts, sizes), kit.take("encoder.0."))
        return layer(x, mask)

    def decode(m: Any, x: Tensor, context: Tensor, mask: Tensor, context_mask: Tensor) -> Any:
        layer = load_weights(m.DecoderLayer(parts, sizes), kit.take("decoder.0."))
        return layer(x, context, mask, context_mask)

    given = {"x": kit["encoder.x"], "mask": kit["encoder.mask"]}
    yield compare(encode, given, kit["encoder.out"], case="encoder")
    names = ("x", "context", "mask", "context_mask")
    given = {name: kit[f"decoder.{name}"] for name in names}
    yield compare(decode, given, kit["decoder.out"], case="decoder")


def transformer_cases(kit: Kit) -> Cases:

    @cache  # the judge runs many wrong Transformers on the same layers
    def build_parts() -> tuple[Any, ...]:
        return build_translator_parts(kit.lent, kit)

    def run(m: Any, source: Tensor, target: Tensor) -> Any:
        return m.Transformer(*build_parts()).eval()(source, target)

    given = {"source": kit["source"], "target": kit["target"]}
    yield compare(run, given, kit["logits"], "logits", case="activations")


def greedy_cases(kit: Kit) -> Cases:
    """The logits of the library's model, played back: a choice of ours cannot change them."""
    settings, logits = kit.settings, kit["logits"]

    def choose(m: Any, source: Tensor) -> Any:
        names = ("begin", "end", "pad", "max_new")
        return m.greedy(
            lambda _, tokens: logits[:, : tokens.shape[1]], source, *(settings[n] for n in names)
        )

    yield compare(
        choose, {"source": kit["source"]}, kit["tokens_out"], "tokens", case="activations"
    )


TRANSLATOR_CASES: dict[str, Callable[[Kit], Cases]] = {
    "padding_mask": attention_cases,
    "split_heads": split_cases,
    "merge_heads": merge_cases,
    "embedding": embedding_cases,
    "layer_norm": layer_norm_cases,
    "residual": residual_cases,
    "transformer": transformer_cases,
    "greedy": greedy_cases,
    "rotary": rotary_cases,
    "gelu_feed_forward": feed_forward_cases,
    "capstone_translator": joint_cases,
}
