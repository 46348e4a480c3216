"""Sets of learners' files: parts that are right, parts that are wrong, and which ones are which."""

from dataclasses import dataclass

from glassformer.school.practice import find_exercise


def edit(name, *edits):
    """The solution of an exercise, changed."""
    source = find_exercise(name).solution
    for old, new in edits:
        assert source.count(old) >= 1, (name, old)
        source = source.replace(old, new)
    return source


@dataclass(frozen=True)
class WrongSet:
    """Files of a learner: right ones by name, wrong ones with their source, the rest missing."""

    right: tuple[str, ...]
    wrong: dict[str, str]
    path: str = "translator"
    says: str = ""  # a piece of what must be said
    checkpoint: bool = False  # whether it takes a model with grouped queries to notice


WRONG_SETS = {
    "scores are not scaled": WrongSet(
        ("split_heads", "merge_heads"),
        {"padding_mask": edit("padding_mask", (" / math.sqrt(q.shape[-1])", ""))},
        says="out[0, ",
    ),
    "heads are cut, not split": WrongSet(
        ("padding_mask",),
        {"split_heads": "def split_heads(x, n):\n    return x.view(1, n, x.shape[1], -1)\n"},
        says="out[0, ",
    ),
    "the embedding is not scaled": WrongSet(
        ("layer_norm", "residual"),
        {"embedding": edit("embedding", (" * math.sqrt(self.weight.shape[1])", ""))},
        says="√",
    ),
    "the variance is divided by dim − 1": WrongSet(
        ("embedding",),
        {
            "layer_norm": edit(
                "layer_norm",
                ("centred.square().mean(dim=-1, keepdim=True)", "x.var(dim=-1, keepdim=True)"),
            )
        },
        says="out[0, ",
    ),
    "the norm comes after the sum": WrongSet(
        ("gelu_feed_forward", "layer_norm"),
        {"residual": edit("residual", ("x + sublayer(norm(x))", "norm(x + sublayer(x))"))},
        says="out[0, ",
    ),
    "pairs of neighbours are rotated": WrongSet(
        ("split_heads",),
        {
            "rotary": edit(
                "rotary",
                ("x.double().chunk(2, dim=-1)", "x.double()[..., ::2], x.double()[..., 1::2]"),
                ("torch.cat((", "torch.stack(("),
                ("dim=-1).to(x.dtype)", "dim=-1).flatten(-2).to(x.dtype)"),
            )
        },
        says="q[0, ",
    ),
    "GELU is approximated": WrongSet(
        ("layer_norm",),
        {
            "gelu_feed_forward": edit(
                "gelu_feed_forward",
                ("torch.erf(z / math.sqrt(2))", "torch.tanh(0.79788456 * (z + 0.044715 * z**3))"),
            )
        },
        says="tanh",
    ),
    "cross-attention is rotated": WrongSet(
        ("rotary", "residual"),
        {
            "capstone_translator": edit(
                "capstone_translator",
                (
                    "self.cross(y, context, context_mask)",
                    "self.cross(y, context[:, : y.shape[1]], context_mask[..., : y.shape[1]], "
                    "torch.arange(min(y.shape[1], context.shape[1])))",
                ),
            )
        },
        says="capstone_translator",
    ),
    "the decoder sees the future": WrongSet(
        ("greedy",),
        {"transformer": edit("transformer", (".tril()", ""))},
        says="causal mask",
    ),
    "greedy looks at the first prediction": WrongSet(
        ("transformer",),
        {"greedy": edit("greedy", ("logits[:, -1]", "logits[:, 0]"))},
        says="first position",
    ),
    "two parts are wrong": WrongSet(
        ("padding_mask", "merge_heads"),
        {
            "layer_norm": edit("layer_norm", (" + self.bias", "")),
            "greedy": edit("greedy", ("argmax", "argmin")),
        },
        says="argmax",
    ),
    "RMSNorm subtracts the mean": WrongSet(
        ("swiglu",),
        {"rms_norm": edit("rms_norm", ("x.square()", "(x - x.mean(-1, keepdim=True)).square()"))},
        path="decoder",
        says="out[0, ",
    ),
    "gate and up are swapped": WrongSet(
        ("rms_norm", "embedding"),
        {
            "swiglu": edit(
                "swiglu", ("z = self.gate(x)", "z = self.up(x)"), ("* self.up(x)", "* self.gate(x)")
            )
        },
        path="decoder",
        says="gate",
    ),
    "the cache is forgotten": WrongSet(
        ("rotary",),
        {
            "capstone_writer": edit(
                "capstone_writer",
                ("torch.cat([cache[0], k], dim=2)", "k"),
                ("torch.cat([cache[1], v], dim=2)", "v"),
            )
        },
        path="decoder",
        says="cache",
    ),
    "all but the k largest are kept": WrongSet(
        ("embedding",),
        {"sampling": edit("sampling", ("logits < least", "logits > least"))},
        path="decoder",
        says="probabilities[0, ",
    ),
    "groups alternate": WrongSet(
        ("split_heads",),
        {
            "grouped_queries": edit(
                "grouped_queries", (".repeat_interleave(n, dim=1)", ".repeat(1, n, 1, 1)")
            )
        },
        path="decoder",
        says="repeat_interleave",
        checkpoint=True,
    ),
    "the base is forgotten": WrongSet(
        ("rotary",),
        {"capstone_writer": edit("capstone_writer", (", sizes.base)", ")"))},
        path="decoder",
        says="sizes.base",
        checkpoint=True,
    ),
}
