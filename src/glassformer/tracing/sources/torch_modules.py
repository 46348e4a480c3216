"""Recording `torch.nn.MultiheadAttention`, wherever a module has one, and PyTorch's own layers.

PyTorch's encoder layers take a shortcut in eval mode that never calls their attention, and leave it
as soon as a hook is attached. So nothing is hooked: while the context is open, `forward` of these
classes reports its calls. What is computed stays the same.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.errors import TraceError
from glassformer.functional import Causal, Explicit, Mask
from glassformer.functional.biases import Bias, as_bias
from glassformer.tracing.compilation import strip_wrappers
from glassformer.tracing.layout import Layout, Place
from glassformer.tracing.mask_rules import MaskFormula
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.patches import FAILED, Tap, listen
from glassformer.tracing.recorder import Recorder
from glassformer.tracing.site_steps import Step


class TorchSource:
    """Listens to every `nn.MultiheadAttention` in a module; sites are named by their paths.

    A call begins a new run if its site has been recorded already. A layer's number is the first
    one in its path.
    """

    reorders: tuple[str, str] = ("", "")  # it has no caches

    def __init__(self, tree: ModuleTree) -> None:
        self.tree = tree
        self.reported: set[nn.Module] = set()  # attention whose layer reports for it

    def check(self, recorder: Recorder) -> None:
        if recorder.tokenizer is not None or recorder.outputs:
            raise TraceError(
                f"nn.MultiheadAttention in {recorder.name} neither reads tokens nor shows "
                "its heads' outputs. Watch it without tokenizer= and outputs=."
            )
        parts = [m for m in self.tree.paths if isinstance(m, nn.MultiheadAttention)]
        recorder.selection.check(None, max(part.num_heads for part in parts))

    def build_readout(self, stack: str) -> None:
        """Found while the model runs, if at all."""
        del stack

    def attach(self, recorder: Recorder, undo: list[Callable[[], None]]) -> None:
        self.recorder = recorder
        recorder.layout = layout = Layout(name=recorder.name)
        paths = {module: strip_wrappers(path) for module, path in self.tree.paths.items()}
        for module, path in paths.items():
            number = re.search(r"\d+", path)
            layer = None if number is None else int(number[0])
            if not recorder.selection.has_layer(layer):
                continue
            if isinstance(module, nn.MultiheadAttention):
                place = Place(path or "attention", "", layer, is_cross=False)
                layout.places[module] = place
                tap = self._tap(place, after=partial(self._record_attention, place))
            elif isinstance(module, nn.TransformerEncoderLayer):
                place = Place(f"{path}.self_attn".lstrip("."), "", layer, is_cross=False)
                after = partial(self._record_layer, place)
                tap = self._tap(place, before=self._enter_layer, after=after)
            else:
                continue
            undo.append(listen(module, "forward", tap))

    def _tap(self, place: Place, **callbacks: Any) -> Tap:
        return Tap(place.name, self.recorder.guard, partial(self._refuse, place), **callbacks)

    def _refuse(self, place: Place, reason: str) -> None:
        self._open_run(place)
        self.recorder.refuse(place, reason)

    def _open_run(self, place: Place) -> None:
        """Continue the present run, or begin one if it has this site already."""
        run = self.recorder.run
        if run is None or place.name in run.sites or place.name in run.refusals:
            self.recorder.begin_run()

    def _record_attention(
        self, place: Place, part: Any, args: tuple, options: dict[str, Any], out: Any
    ) -> None:
        if part not in self.reported and out is not FAILED:
            self._record(place, part, dict(zip(_ARGUMENTS, args, strict=False)) | options)

    def _enter_layer(self, layer: Any, _args: tuple, _options: dict[str, Any]) -> None:
        self.reported.add(layer.self_attn)

    def _record_layer(
        self, place: Place, layer: Any, args: tuple, options: dict[str, Any], out: Any
    ) -> None:
        self.reported.discard(layer.self_attn)
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
        self._record(place, layer.self_attn, {"query": x, "key": x, "value": x, **options})

    def _record(self, place: Place, part: nn.MultiheadAttention, given: dict[str, Any]) -> None:
        self._open_run(place)
        self.recorder.record(place, lambda: (_make_step(part, **given), None))


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


def _make_step(
    part: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    **_unused: Any,  # need_weights and average_attn_weights: what is returned, not what is computed
) -> Step:
    if part.bias_k is not None or part.add_zero_attn:
        raise TraceError("it adds keys of its own, by add_bias_kv or add_zero_attn")
    if query.ndim == 2:
        query, key, value = (x.unsqueeze(0 if part.batch_first else 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    if not part.batch_first:
        query, key, value = (x.transpose(0, 1) for x in (query, key, value))
    q, k, v = _project(part, query.detach(), key.detach(), value.detach())
    mask, bias = _read_masks(attn_mask, key_padding_mask, part.num_heads)
    if mask is None and bias is None and is_causal:
        mask = Causal()
    L, S = q.shape[2], k.shape[2]
    return Step(q=q, k=k, v=v, rule=MaskFormula(L=L, S=S, formula=mask), bias=bias, stop=S)


def _project(
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


def _read_masks(
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
