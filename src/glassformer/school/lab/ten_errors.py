"""Ten errors of teaching material on attention: wrong forms, and right ones beside them.

Every function below runs a wrong and a right form and tells how far each is from the truth: a
number where there is one, an exception where there is none. A small letter marks the parts of an
error that has several. No gradient is needed: whoever runs them turns gradients off.
"""

import builtins
import inspect
import math
import types
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from glassformer import fromscratch
from glassformer.functional import Padding, attention, attention_weights
from glassformer.school.lab.measurement import largest_difference

_B, _H, _L, _S, _D = 2, 3, 5, 7, 11
_C = _H * _D


class Errors(NamedTuple):
    """Distances from the truth; None where the code raised."""

    wrong: float | None
    right: float | None


def average_heads() -> Errors:
    """1. torch.nn.MultiheadAttention returns the mean over heads by default."""
    module = nn.MultiheadAttention(_C, _H, batch_first=True, dtype=torch.float64)
    x = torch.randn(_B, _L, _C, dtype=torch.float64)
    assert module.in_proj_weight is not None and module.in_proj_bias is not None
    heads = (x @ module.in_proj_weight.T + module.in_proj_bias).chunk(3, -1)
    q, k, _ = (part.unflatten(-1, (_H, _D)).transpose(1, 2) for part in heads)
    truth = (torch.einsum("bhld,bhsd->bhls", q, k) / math.sqrt(_D)).softmax(-1)
    default = module(x, x, x)[1][:, None].expand_as(truth)
    return Errors(
        largest_difference(default, truth), largest_difference(attention_weights(q, k), truth)
    )


def assume_xavier() -> Errors:
    """2. nn.Linear starts Kaiming-uniform, bound 1/√fan_in; it is said to be Xavier."""
    fan_in, fan_out = 130, 70
    bound = float(nn.Linear(fan_in, fan_out).weight.abs().max())
    xavier, kaiming = math.sqrt(6 / (fan_in + fan_out)), 1 / math.sqrt(fan_in)
    return Errors(abs(xavier - bound), abs(kaiming - bound))


def floor_divide_scores() -> Errors:
    """3. Scores divided with // instead of /."""
    q, k = torch.randn(1, 1, _L, _D), torch.randn(1, 1, _S, _D)
    scores = (q @ k.transpose(-1, -2))[0, 0]
    truth = (scores.double() / math.sqrt(_D)).softmax(-1)
    wrong = (scores // math.sqrt(_D)).softmax(-1)
    return Errors(
        largest_difference(wrong, truth), largest_difference(attention_weights(q, k)[0, 0], truth)
    )


def view_keys_with_query_length() -> Errors:
    """4. Keys and values viewed with the length of the queries: raises where L ≠ S."""
    x, context = torch.randn(_B, _L, _C), torch.randn(_B, _S, _C)
    wrong = _run_or_none(lambda: context.view(_B, _L, _H, _D))
    module = fromscratch.MultiHeadLinear(_C, _H)
    out, weights = module(x, context)
    fits = out.shape == x.shape and weights.shape == (_B, _H, _L, _S)
    return Errors(wrong, 0.0 if fits else math.inf)


def mask_whole_row() -> Errors:
    """5a. A row of −∞ becomes 0/0: NaN. The correct output is zero."""
    q, k, v = (torch.randn(1, 1, _L, _D) for _ in range(3))
    mask = torch.ones(_L, _L, dtype=torch.bool)
    mask[2] = False
    scores = (q @ k.transpose(-1, -2) / math.sqrt(_D)).masked_fill(~mask, -math.inf)
    wrong = (scores.softmax(-1) @ v)[0, 0, 2]
    right = attention(q, k, v, mask=mask)[0, 0, 2]
    return Errors(math.inf if wrong.isnan().any() else _largest(wrong), _largest(right))


def fill_float16_with_minus_1e9() -> Errors:
    """5b. −1e9 in float16: it cannot be held, and filling with it raises."""
    scores = torch.randn(_S).half()
    hidden = torch.arange(_S) > 3
    wrong = _run_or_none(lambda: scores.masked_fill(hidden, -1e9).softmax(-1))
    filled = scores.masked_fill(hidden, -math.inf).softmax(-1)
    return Errors(wrong, _largest(filled[hidden]))


def invert_mask() -> Errors:
    """6. The comment says that ones are hidden, the code hides zeros; the truth hides the last."""
    scores, to_hide = torch.randn(_S), torch.zeros(_S, dtype=torch.long)
    to_hide[-1] = 1
    wrong = scores.masked_fill(to_hide == 0, -math.inf).softmax(-1)
    right = scores.masked_fill(to_hide == 1, -math.inf).softmax(-1)
    return Errors(float(wrong[-1]), float(right[-1]))


def mistake_output_for_weights() -> Errors:
    """7a. A variable called weights that holds the output: its rows do not sum to 1."""
    q, k, v = (torch.randn(_S, _S) for _ in range(3))
    weights, _ = fromscratch.attention(q, k, v)  # the output comes first
    _, right = fromscratch.attention(q, k, v)
    return Errors(*(_largest(rows.sum(-1) - 1) for rows in (weights, right)))


def forget_import() -> Errors:
    """7b. `math` used without import: the same code in a file that lacks the line."""
    bare = types.FunctionType(
        inspect.unwrap(fromscratch.attention).__code__,
        {"__builtins__": builtins.__dict__},
        None,
        (None,),
    )
    q, k, v = (torch.randn(_S, _D) for _ in range(3))
    wrong = _run_or_none(lambda: bare(q, k, v))
    return Errors(wrong, _run_or_none(lambda: fromscratch.attention(q, k, v)))


def reorder_layers_under_seed() -> Errors:
    """8. A printed matrix does not come back under its seed when layers are made in other order."""
    x, seed = torch.randn(1, 3, 4), int(torch.randint(0, 1 << 30, ()))

    def attend_in_order(order: str) -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = {name: nn.Linear(4, 4, bias=False) for name in order}
        return fromscratch.attention(layers["q"](x), layers["k"](x), x)[1]

    truth = attend_in_order("qkv")
    return Errors(
        largest_difference(attend_in_order("vqk"), truth),
        largest_difference(attend_in_order("qkv"), truth),
    )


def rank_keys_by_distance() -> Errors:
    """9. The nearest key by Euclid against the key that softmax prefers: weight that is missed."""
    q, k = torch.randn(1, 1, 1, _D), torch.randn(1, 1, _S, _D)
    # One key that is far away because it is long, and points the same way.
    k[0, 0, 0] = 4 * q[0, 0, 0]
    weights = attention_weights(q, k)[0, 0, 0]
    by_distance = torch.cdist(q[0, 0], k[0, 0]).argmin()
    by_product = (q[0, 0] @ k[0, 0].T).argmax()
    most = weights.max()
    return Errors(float(most - weights[by_distance]), float(most - weights[by_product]))


def add_normalized_residual() -> Errors:
    """10a. The residual taken after the norm: with a sublayer that adds nothing, x should stay."""
    norm, x = nn.LayerNorm(_C), torch.randn(_B, _L, _C)
    wrong = norm(x) + torch.zeros_like(x)
    right = fromscratch.pre_norm(x, torch.zeros_like, norm)
    return Errors(largest_difference(wrong, x), largest_difference(right, x))


def feed_same_tokens_twice() -> Errors:
    """10b. Encoder and decoder fed the same tokens: earlier outputs change with a later token."""
    encoder, own, cross = (fromscratch.MultiHeadLinear(_C, _H) for _ in range(3))
    causal, source = fromscratch.look_ahead_mask(_L), torch.randn(1, _S, _C)

    def decode(tokens: Tensor, read: Tensor) -> Tensor:
        x = tokens + own(tokens, mask=causal)[0]
        return (x + cross(x, encoder(read)[0])[0])[:, :-1]

    tokens = torch.randn(1, _L, _C)
    changed = tokens.clone()
    changed[:, -1] += 1
    wrong = largest_difference(decode(tokens, tokens), decode(changed, changed))
    right = largest_difference(decode(tokens, source), decode(changed, source))
    return Errors(wrong, right)


def use_unbiased_variance() -> Errors:
    """10c. LayerNorm with the unbiased variance."""
    x = torch.randn(_B, _L, _D, dtype=torch.float64)
    truth = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
    wrong = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()
    right = fromscratch.LayerNorm(_D).double()(x)
    return Errors(largest_difference(wrong, truth), largest_difference(right, truth))


def omit_padding_mask() -> Errors:
    """10d. No padding mask: a text gives something else beside a longer one."""
    q, k, v = (torch.randn(1, _H, _L, _D) for _ in range(3))
    truth = attention(q[:, :, :3], k[:, :, :3], v[:, :, :3])
    mask = Padding(torch.tensor([3]))
    wrong, right = (attention(q, k, v, mask=m)[:, :, :3] for m in (None, mask))
    return Errors(largest_difference(wrong, truth), largest_difference(right, truth))


def _largest(found: Tensor) -> float:
    return float(found.abs().max())


def _run_or_none(run: Callable[[], object]) -> float | None:
    try:
        run()
    except (RuntimeError, NameError):
        return None
    return 0.0


# By the key of its texts.
ERRORS: dict[str, Callable[[], Errors]] = {
    "averaged": average_heads,
    "initial": assume_xavier,
    "floored": floor_divide_scores,
    "viewed": view_keys_with_query_length,
    "emptied": mask_whole_row,
    "billion": fill_float16_with_minus_1e9,
    "inverted": invert_mask,
    "swapped": mistake_output_for_weights,
    "unimported": forget_import,
    "reseeded": reorder_layers_under_seed,
    "nearest": rank_keys_by_distance,
    "normed": add_normalized_residual,
    "leaked": feed_same_tokens_twice,
    "unbiased": use_unbiased_variance,
    "padded": omit_padding_mask,
}
