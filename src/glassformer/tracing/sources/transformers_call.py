"""What a call of attention in transformers means: the rules of the functions that compute it."""

import inspect
from dataclasses import replace
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.mask_rules import MaskRule, find_rule, read_mask
from glassformer.tracing.site_steps import Step
from glassformer.tracing.sources.transformers_interface import KNOWN, Call, parameters

READ = {"scaling", "dropout", "is_causal", "softcap", "position_bias", "s_aux"}
# A sliding window is in the mask as well, and lengths of packed sequences are for other kernels.
UNREAD = {
    "sliding_window",
    "output_attentions",
    "cu_seq_lens_q",
    "cu_seq_lens_k",
    "max_length_q",
    "max_length_k",
}


def as_step(
    call: Call, out: Any, *, stop: int, known: dict[Any, Any]
) -> tuple[Step, Tensor | None]:
    """A call as a step, and how far its last row is from the model's, where that is uncertain.

    `known` caches the rules of masks: layers share them.
    """
    if call.implementation not in KNOWN:
        raise TraceError(f"what {call.implementation} computes is not known here")
    options = {name: value for name, value in call.options.items() if value is not None}
    is_thinned = call.module.training and options.get("dropout", 0.0) > 0
    computed = _find_output(out, call.q)
    is_checked = call.implementation == "eager" and not is_thinned and computed is not None
    unknown = sorted(set(options) - READ - UNREAD)
    meant = [] if is_checked else [n for n in unknown if _reads_option(call.function, n)]
    if meant:
        raise TraceError(
            f"{type(call.module).__name__} passes {', '.join(meant)} to its attention, and what "
            "that means is not known here."
        )
    read = parameters(call.function)
    q, k, v = _promote_operands(call)
    position_bias = options.get("position_bias") if "position_bias" in read else None
    if call.mask is None:
        rule, added = _read_no_mask(call, options), None
        k, v = (t[:, :, : rule.S] for t in (k, v))
    else:
        key = id(call.mask), q.shape[2], k.shape[2], call.implementation
        if key not in known:
            said = read_mask(call.mask, *key[1:3], is_added=call.implementation == "eager")
            known[key] = (call.mask, *said)  # the mask too: while it lives, nothing has its id
        _, rule, added = known[key]
    if position_bias is not None:
        position_bias = position_bias.detach()[..., : rule.S]
        added = position_bias if added is None else added + position_bias
    scale = options.get("scaling")
    step = Step(
        q=q,
        k=k,
        v=v,
        rule=rule,
        bias=added,
        scale=None if scale is None else float(scale),
        softcap=options.get("softcap") if "softcap" in read else None,
        sink=_sink(call),
        lse=call.lse if call.lse is not None and call.lse.shape == q.shape[:3] else None,
        out=computed,
        stop=stop,
    )
    if not is_checked or computed is None or not computed.numel():
        return step, None
    if torch.is_autocast_enabled(q.device.type):
        with torch.autocast(q.device.type, enabled=False):
            return step, _unrounded_difference(call, step)
    return step, step.difference(computed)


def _reads_option(function: Any, name: str) -> bool:
    """Whether a function uses an option at all: models pass theirs to all parts."""
    code = inspect.unwrap(function).__code__
    return name in parameters(function) or name in code.co_consts


def _promote_operands(call: Call) -> list[Tensor]:
    """The operands, in the widest of their types where autocast made them differ."""
    operands = [call.q, call.k, call.v]
    q, k = operands[:2]
    if len(q) == 1 < len(k):  # learned queries, the same for all sequences
        operands[0] = q.expand(len(k), *q.shape[1:])
    widest = reduce(torch.promote_types, (operand.dtype for operand in operands))
    return [operand.to(widest) for operand in operands]


def _unrounded_difference(call: Call, step: Step) -> Tensor:
    """The same difference, computed by the model's own function outside autocast.

    Autocast rounds scores, large ones so much that different functions cannot be distinguished.
    """
    wide = [t.float() for t in (step.q, step.k, step.v) if t is not None]
    q, k, v = wide[0], *(t.float() for t in _promote_operands(call)[1:])
    rows = {name: _last_row(value) for name, value in call.options.items()}
    out = call.function(call.module, q[:, :, -1:], k, v, _last_row(call.mask), **rows)
    found = _find_output(out, q[:, :, -1:])
    assert found is not None
    return replace(step, q=wide[0], k=wide[1], v=wide[2]).difference(found)


def _last_row(value: Any) -> Any:
    """The last row of anything that has a row for each query."""
    return value[..., -1:, :] if isinstance(value, Tensor) and value.ndim == 4 else value


def _read_no_mask(call: Call, options: dict[str, Any]) -> MaskRule:
    """Without a mask, eager attention hides nothing, and causal fused attention hides the future.

    The latter aligns the first query with the first key; keys behind the last query are those of a
    fixed cache that are not written yet.
    """
    L, S, device = call.q.shape[2], call.k.shape[2], call.q.device
    is_causal = options.get("is_causal", getattr(call.module, "is_causal", True))
    if call.implementation == "eager" or not is_causal or L == 1:
        return MaskRule(L=L, S=S, device=device)
    if L <= S:
        return MaskRule(L=L, S=L, right=0, device=device)
    return find_rule(torch.ones(1, 1, L, S, dtype=torch.bool, device=device).tril())


def _sink(call: Call) -> Tensor | None:
    """The sink of each head, a logit in the softmax without a value, where one is read."""
    if "sinks" not in call.function.__code__.co_names:
        return None
    sinks = getattr(call.module, "sinks", None)
    return None if sinks is None else sinks.detach().flatten()


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) and out else out


def _find_output(out: Any, q: Tensor) -> Tensor | None:
    found = _first(out)
    if not isinstance(found, Tensor) or found.ndim != 4:
        return None
    found = found.transpose(1, 2)  # (B, H, L, E)
    return found if found.shape[:3] == q.shape[:3] else None
