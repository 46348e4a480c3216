"""What a call of attention in transformers means: the rules of the functions that compute it."""

from typing import Any

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.observe.interface import Call, parameters
from glassformer.observe.opening import Opening, opening_and_bias, opening_of
from glassformer.observe.steps import Step

READ = {"scaling", "dropout", "is_causal", "softcap", "position_bias", "s_aux"}
# Eager and fused attention read none of these. A sliding window is in the mask as well, lengths of
# packed sequences are for other kernels; the rest is what models hand down to all of their parts.
UNREAD = {
    "sliding_window",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "use_cache",
    "position_ids",
    "cache_position",
    "position_embeddings",
    "deterministic",
    "cu_seq_lens_q",
    "cu_seq_lens_k",
    "max_length_q",
    "max_length_k",
    "num_items_in_batch",
    "output_router_logits",
}


def as_step(
    call: Call, out: Any, *, stop: int, known: dict[Any, Any]
) -> tuple[Step, Tensor | None]:
    """A call as a step, and how far its last row is from the model's where that must be asked.

    `known` keeps what masks were found to say: layers share them.
    """
    options = {name: value for name, value in call.options.items() if value is not None}
    if unknown := sorted(set(options) - READ - UNREAD):
        raise TraceError(
            f"{type(call.module).__name__} passes {', '.join(unknown)} to its attention, and what "
            "that means is not known here."
        )
    read = parameters(call.function)
    q, k, v = (operand.detach() for operand in (call.q, call.k, call.v))
    position_bias = options.get("position_bias") if "position_bias" in read else None
    if call.mask is None:
        opening, added = _without_mask(call, options), None
        k, v = (t[:, :, : opening.S] for t in (k, v))
    else:
        key = id(call.mask), q.shape[2], k.shape[2], call.implementation
        if key not in known:
            said = opening_and_bias(call.mask, *key[1:3], is_added=call.implementation == "eager")
            known[key] = (call.mask, *said)  # the mask too: while it lives, nothing has its id
        _, opening, added = known[key]
    if position_bias is not None:
        position_bias = position_bias.detach()[..., : opening.S]
        added = position_bias if added is None else added + position_bias
    scale = options.get("scaling")
    step = Step(
        q=q,
        k=k,
        v=v,
        opening=opening,
        bias=added,
        scale=None if scale is None else float(scale),
        softcap=options.get("softcap") if "softcap" in read else None,
        sink=_sink(call),
        lse=call.lse if call.lse is not None and call.lse.shape == q.shape[:3] else None,
        out=_computed(out, q),
        stop=stop,
    )
    is_thinned = call.module.training and options.get("dropout", 0.0) > 0
    if call.implementation != "eager" or is_thinned or step.out is None or not step.out.numel():
        return step, None
    return step, step.difference(step.out)


def _without_mask(call: Call, options: dict[str, Any]) -> Opening:
    """No mask hides nothing for eager attention, and the future for a fused one that is causal.

    For that one, a first query stands at the first key, and keys behind the last query are those of
    a fixed cache that are not written yet.
    """
    L, S, device = call.q.shape[2], call.k.shape[2], call.q.device
    is_causal = options.get("is_causal", getattr(call.module, "is_causal", True))
    if call.implementation == "eager" or not is_causal or L == 1:
        return Opening(L=L, S=S, device=device)
    if L <= S:
        return Opening(L=L, S=L, right=0, device=device)
    return opening_of(torch.ones(1, 1, L, S, dtype=torch.bool, device=device).tril())


def _sink(call: Call) -> Tensor | None:
    """The logit of each head that takes part in the softmax and has no value, where it is read."""
    if "sinks" not in call.function.__code__.co_names:
        return None
    sinks = getattr(call.module, "sinks", None)
    return None if sinks is None else sinks.detach().flatten()


def _computed(out: Any, q: Tensor) -> Tensor | None:
    found = out[0] if isinstance(out, tuple) else out
    if not isinstance(found, Tensor) or found.ndim != 4:
        return None
    found = found.detach().transpose(1, 2)  # (B, H, L, E)
    return found if found.shape[:3] == q.shape[:3] else None
