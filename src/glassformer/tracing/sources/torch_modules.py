"""Watching `torch.nn.MultiheadAttention`, wherever a module has one, and PyTorch's own layers.

PyTorch's encoder layers take a shortcut in eval mode that never calls their attention, and leave it
as soon as a hook is attached. So nothing is hooked: while the context is open, `forward` of these
classes reports its calls. What is computed stays the same.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import GlassformerError, TraceError
from glassformer.functional import Causal, Explicit, Mask
from glassformer.functional.biases import Bias, as_bias
from glassformer.tracing.guard import Guard
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.patches import FAILED, Tap, listen
from glassformer.tracing.recorder import recording
from glassformer.tracing.selection import Choice, Rows
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import part_of
from glassformer.tracing.trace import Run, Trace


@contextmanager
def record_torch(
    module: nn.Module,
    *,
    layers: Collection[int] | None = None,
    heads: Collection[int] | None = None,
    rows: Rows | None = None,
    device: torch.device | str | None = None,
    budget: int | str | None = None,
    folder: str | Path | None = None,
) -> Iterator[Trace]:
    """Record every `nn.MultiheadAttention` in a module; sites are named by their paths.

    Each call begins a new run if its site has been passed already. A layer's number is the first
    one in its path.
    """
    found = [m for m in module.modules() if isinstance(m, nn.MultiheadAttention)]
    choice = Choice(layers=layers, heads=heads, rows=rows)
    choice.check(None, max(part.num_heads for part in found))
    recorder = _Recorder(module, choice, Keeper(device, budget, folder))
    with recording(recorder, module) as trace:
        yield trace


class _Recorder:
    def __init__(self, module: nn.Module, choice: Choice, keeper: Keeper) -> None:
        self.name, self.guard, self.trace = type(module).__name__, Guard("gf.watch"), Trace()
        self.module, self.choice, self.keeper = module, choice, keeper
        self.inside: set[nn.Module] = set()  # attention that its layer has reported

    def attach(self, undo: list[Callable[[], None]]) -> None:
        for path, part in self.module.named_modules():
            name = path.replace("_orig_mod.", "").removesuffix("_orig_mod")
            layer = re.search(r"\d+", name)
            if not self.choice.has_layer(None if layer is None else int(layer[0])):
                continue
            if isinstance(part, nn.MultiheadAttention):
                see = partial(self._saw_attention, name or "attention")
                undo.append(listen(part, "forward", self._tap(name, after=see)))
            elif isinstance(part, nn.TransformerEncoderLayer):
                name = f"{name}.self_attn".lstrip(".")
                tap = self._tap(
                    name, before=self._enter_layer, after=partial(self._saw_layer, name)
                )
                undo.append(listen(part, "forward", tap))

    def _tap(self, name: str, **callbacks: Any) -> Tap:
        name = name or "attention"
        return Tap(name, self.guard, partial(self._refuse, name), **callbacks)

    def _refuse(self, name: str, reason: str) -> None:
        run = self._run_without(name)
        run.sites.pop(name, None)
        run.refusals[name] = reason

    def refuse_all(self, reason: str) -> None:
        self.trace.runs.append(Run(refusals={self.name: reason}))

    def close(self) -> None:
        """Everything is put together when it is seen."""

    def _run_without(self, name: str) -> Run:
        """The present run, or a new one if it has this site already."""
        runs = self.trace.runs
        if not runs or name in runs[-1].sites or name in runs[-1].refusals:
            runs.append(Run())
        return runs[-1]

    def _saw_attention(
        self, name: str, part: Any, args: tuple, options: dict[str, Any], out: Any
    ) -> None:
        if part not in self.inside and out is not FAILED:
            self._add(name, part, dict(zip(_ARGUMENTS, args, strict=False)) | options)

    def _enter_layer(self, layer: Any, _args: tuple, _options: dict[str, Any]) -> None:
        self.inside.add(layer.self_attn)

    def _saw_layer(
        self, name: str, layer: Any, args: tuple, options: dict[str, Any], out: Any
    ) -> None:
        self.inside.discard(layer.self_attn)
        if out is FAILED:
            return
        given = dict(zip(_OF_LAYERS, args, strict=False)) | options
        x, hidden = given["src"], given.get("src_key_padding_mask")
        if x.is_nested:  # sequences of different lengths: PyTorch leaves padding out
            lengths = torch.tensor([len(each) for each in x.unbind()], device=x.device)
            x = torch.nested.to_padded_tensor(x, 0.0)
            hidden = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
        with torch.no_grad():
            x = layer.norm1(x) if layer.norm_first else x
        masks = {"key_padding_mask": hidden, "attn_mask": given.get("src_mask")}
        options = {"is_causal": given.get("is_causal", False), **masks}
        self._add(name, layer.self_attn, {"query": x, "key": x, "value": x, **options})

    def _add(self, name: str, part: nn.MultiheadAttention, given: dict[str, Any]) -> None:
        try:
            with torch.no_grad():
                site = _site(name, part, **given)
        except GlassformerError as error:  # the module does what cannot be shown
            self._refuse(name, str(error).rstrip("."))
            return
        site = part_of(site, self.choice, self.keeper)
        self._run_without(name).sites[name] = site


_ARGUMENTS = (
    "query",
    "key",
    "value",
    "key_padding_mask",
    "need_weights",
    "attn_mask",
    "average_attn_weights",
    "is_causal",
)
_OF_LAYERS = ("src", "src_mask", "src_key_padding_mask", "is_causal")


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
        raise TraceError("it adds keys of its own, by add_bias_kv or add_zero_attn")
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
