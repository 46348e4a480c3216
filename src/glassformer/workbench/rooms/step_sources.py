"""Where the code of each step is: a function, and words of the line that does it.

The numbers of lines are looked up in the source, so that they are right after any change of it.
"""

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import glassformer
from glassformer.functional import reference
from glassformer.functional.positions import rotary
from glassformer.layers import Block, CrossAttention, FeedForward, SelfAttention, attention
from glassformer.models.stack import Stack

_ROOT = Path(glassformer.__file__).parent.parent

# Of a step: the function, and a piece of its line. Keys with a suffix are variants of a step.
_LINES: dict[str, tuple[Callable[..., Any], str]] = {
    "x": (Stack.forward, "x = block("),
    "norm": (Block.forward, "self.attention_norm(x), mask"),
    "norm.cross": (Block.forward, "self.cross(self.cross_norm(x)"),
    "project": (SelfAttention.forward, "self.qkv(x)"),
    "project.cross": (CrossAttention.forward, "self.q(x)"),
    "head_norm": (SelfAttention.forward, "self.q_norm(q)"),
    "rotate": (rotary.rotate, "torch.cat((a * cos"),
    "rotate.interleaved": (rotary.rotate, "torch.stack((a * cos"),
    "keys": (SelfAttention.forward, "heads.split("),
    "keys.cross": (CrossAttention.forward, "self.kv(context)"),
    "values": (SelfAttention.forward, "heads.split("),
    "values.cross": (CrossAttention.forward, "self.kv(context)"),
    "dots": (reference.attention_weights, "k.transpose(-1, -2)"),
    "scale": (reference.attention_weights, "q * scoring.scale"),
    "softcap": (reference.attention_weights, "torch.tanh(scores"),
    "bias": (reference.attention_weights, "scoring.bias.tile(whole)"),
    "mask": (reference.attention_weights, "~scoring.mask.tile(whole)"),
    "exp": (reference.attention_weights, ".softmax(-1)"),
    "weights": (reference.attention_weights, ".softmax(-1)"),
    "sum": (reference.attention, "F.dropout(weights, dropout) @ v"),
    "merge": (attention.merge_heads, "flatten(2)"),
    "output": (SelfAttention.forward, "self.out("),
    "output.cross": (CrossAttention.forward, "self.out("),
    "after_norm": (Block.forward, "self.attention_norm(x + "),
    "after_norm.cross": (Block.forward, "self.cross_norm(x + "),
    "ff_norm": (Block.forward, "self.feed_forward(self.feed_forward_norm(x))"),
    "ff_up": (FeedForward.forward, "act(self.up(x))"),
    "ff_up.gated": (FeedForward.forward, "self.up(x).chunk(2"),
    "ff_hidden": (FeedForward.forward, "act(self.up(x))"),
    "ff_hidden.gated": (FeedForward.forward, "act(gate) * up"),
    "ff_down": (FeedForward.forward, "self.down("),
    "ff_residual": (Block.forward, "self.feed_forward(self.feed_forward_norm(x))"),
    "ff_residual.post": (Block.forward, "self.feed_forward_norm(x + "),
    "ff_after_norm": (Block.forward, "self.feed_forward_norm(x + "),
}
_RESIDUALS = {"residual": 0, "residual.cross": 1}  # the lines `x = x + self._drop(y)`, in order


@cache
def find_line(step: str, variant: str = "") -> tuple[str, int, str]:
    """The file, the line and its code, of a step or a variant of it."""
    name = (
        f"{step}.{variant}" if variant and f"{step}.{variant}" in {*_LINES, *_RESIDUALS} else step
    )
    if name in _RESIDUALS:
        return _locate(Block.forward, "x = x + self._drop(y)", _RESIDUALS[name])
    function, piece = _LINES[name]
    return _locate(function, piece, 0)


def _locate(function: Callable[..., Any], piece: str, nth: int) -> tuple[str, int, str]:
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    found = [i for i, line in enumerate(lines) if piece in line]
    path = Path(inspect.getsourcefile(inspect.unwrap(function)) or "").relative_to(_ROOT)
    return path.as_posix(), first + found[nth], lines[found[nth]].strip()
