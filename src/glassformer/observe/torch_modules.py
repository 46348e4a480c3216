"""Watching `torch.nn.MultiheadAttention`, wherever a module has one, and PyTorch's own layers.

PyTorch's encoder layers take a shortcut in eval mode that never calls their attention, and leave it
as soon as a hook is attached. So nothing is hooked: while the context is open, `forward` of each
such module is one that records and then calls the original. What is computed stays the same.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.attention import Causal, Explicit, Mask
from glassformer.attention.biases import Bias, as_bias
from glassformer.errors import TraceError
from glassformer.observe.choice import Choice, Rows
from glassformer.observe.keeping import Keeper
from glassformer.observe.partial import part_of
from glassformer.observe.site import Site
from glassformer.observe.trace import Run, Trace


@contextmanager
def observe_torch(
    module: nn.Module,
    *,
    heads: Collection[int] | None = None,
    rows: Rows | None = None,
    device: torch.device | str | None = None,
    budget: int | str | None = None,
    folder: str | Path | None = None,
) -> Iterator[Trace]:
    """Record every `nn.MultiheadAttention` in a module; sites are named by their paths.

    ::

        with gf.observe_torch(nn.TransformerEncoder(layer, 6)) as trace:
            model(x)
        trace["layers.0.self_attn"].weights(head=3)

    Each call begins a new run if its site has been passed already. What is kept, and where, is
    chosen as for `observe`.
    """
    found = [m for m in module.modules() if isinstance(m, nn.MultiheadAttention)]
    if not found:
        raise TraceError(
            f"observe_torch needs a module with nn.MultiheadAttention; {type(module).__name__} has "
            "none. Use record for operands of your own."
        )
    recorder = _Recorder(Choice(heads=heads, rows=rows), Keeper(device, budget, folder))
    patched: list[nn.Module] = []
    try:
        for path, part in module.named_modules():
            if isinstance(part, nn.MultiheadAttention):
                part.forward = recorder.attention(path or "attention", part)
                patched.append(part)
            elif isinstance(part, nn.TransformerEncoderLayer):
                part.forward = recorder.encoder_layer(f"{path}.self_attn".lstrip("."), part)
                patched.append(part)
        yield recorder.trace
    finally:
        for part in patched:
            del part.forward  # the class's own is behind it


class _Recorder:
    def __init__(self, choice: Choice, keeper: Keeper) -> None:
        self.trace, self.choice, self.keeper = Trace(), choice, keeper
        self.inside: set[str] = set()  # layers that have recorded for their attention

    def attention(self, name: str, part: nn.MultiheadAttention) -> Any:
        original = part.forward

        def forward(query: Tensor, key: Tensor, value: Tensor, *args: Any, **options: Any) -> Any:
            if name not in self.inside:
                given = dict(zip(_ARGUMENTS, args, strict=False)) | options
                self.add(_site(name, part, query, key, value, **given))
            return original(query, key, value, *args, **options)

        return forward

    def encoder_layer(self, name: str, part: nn.TransformerEncoderLayer) -> Any:
        original = part.forward

        def forward(
            src: Tensor,
            src_mask: Tensor | None = None,
            src_key_padding_mask: Tensor | None = None,
            is_causal: bool = False,
        ) -> Tensor:
            x = part.norm1(src) if part.norm_first else src
            self.add(
                _site(
                    name,
                    part.self_attn,
                    x,
                    x,
                    x,
                    key_padding_mask=src_key_padding_mask,
                    attn_mask=src_mask,
                    is_causal=is_causal,
                )
            )
            self.inside.add(name)
            try:
                return original(src, src_mask, src_key_padding_mask, is_causal)
            finally:
                self.inside.discard(name)

        return forward

    def add(self, site: Site) -> None:
        if not self.trace.runs or site.name in self.trace.run.sites:
            self.trace.runs.append(Run())
        self.trace.run.sites[site.name] = part_of(site, self.choice, self.keeper)


_ARGUMENTS = (
    "key_padding_mask",
    "need_weights",
    "attn_mask",
    "average_attn_weights",
    "is_causal",
)


def _site(
    name: str,
    part: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    **_unused: Any,  # need_weights and average_attn_weights: what is returned, not what is computed
) -> Site:
    if part.bias_k is not None or part.add_zero_attn:
        raise TraceError(
            f"{name} must not add keys of its own to be recorded; it has add_bias_kv or "
            "add_zero_attn."
        )
    if query.ndim == 2:
        query, key, value = (x.unsqueeze(0 if part.batch_first else 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    if not part.batch_first:
        query, key, value = (x.transpose(0, 1) for x in (query, key, value))
    q, k, v = _projected(part, query.detach(), key.detach(), value.detach())
    mask, bias = _masks(attn_mask, key_padding_mask, part.num_heads)
    if mask is None and bias is None and is_causal:
        mask = Causal()
    return Site(name=name, q=q, k=k, v=v, mask=mask, bias=bias)


def _projected(
    part: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, ...]:
    if part.in_proj_weight is not None:
        weights = part.in_proj_weight.detach().chunk(3)
    else:
        separate = (part.q_proj_weight, part.k_proj_weight, part.v_proj_weight)
        weights = tuple(w.detach() for w in separate)
    biases = (None,) * 3 if part.in_proj_bias is None else part.in_proj_bias.detach().chunk(3)
    inputs = zip((query, key, value), weights, biases, strict=True)
    return tuple(
        F.linear(x, w, b).unflatten(-1, (part.num_heads, -1)).transpose(1, 2)  # B H L D
        for x, w, b in inputs
    )


def _masks(
    attn_mask: Tensor | None, padding: Tensor | None, n_heads: int
) -> tuple[Mask | None, Bias | None]:
    """PyTorch's way in ours: True hides, numbers are added, −∞ among them hides too."""
    masks: list[Mask] = []
    bias: Bias | None = None
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask.unflatten(0, (-1, n_heads))
    if padding is not None:
        padding = padding[:, None, None]
    for given in (attn_mask, padding):
        if given is None:
            continue
        hidden = given if given.dtype == torch.bool else given.isneginf()
        if bool(hidden.any()):
            masks.append(Explicit(~hidden))
        if given.dtype != torch.bool:
            added = given.detach().masked_fill(hidden, 0.0)
            if bool(added.any()):
                bias = as_bias(added) if bias is None else bias + added
    if len(masks) == 2:
        return masks[0] & masks[1], bias
    return (masks[0] if masks else None), bias
