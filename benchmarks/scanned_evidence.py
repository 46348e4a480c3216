"""How a watched model compares with itself unwatched, and with its own eager attention."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.functional.statistics.summary import attention_tile
from glassformer.tracing import Site, Trace

NEAR = {torch.float64: 1e-8, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def tensors(out: Any) -> list[Tensor]:
    """Every tensor in an output, in order."""
    if isinstance(out, Tensor):
        return [out]
    if isinstance(out, dict):
        out = list(out.values())
    return [t for part in out for t in tensors(part)] if isinstance(out, tuple | list) else []


def same(a: Any, b: Any) -> bool:
    """Whether two outputs are equal to the bit, places without a value included."""
    ours, theirs = tensors(a), tensors(b)
    return len(ours) == len(theirs) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.equal(x.nan_to_num(), y.nan_to_num())
        for x, y in zip(ours, theirs, strict=True)
    )


def relative_difference(a: Any, b: Any) -> float:
    """How far outputs of two implementations lie apart, in units of the largest number."""
    ours, theirs = tensors(a), tensors(b)
    if [t.shape for t in ours] != [t.shape for t in theirs]:
        ours, theirs = ours[:1], theirs[:1]
    return max(
        float((x - y).abs().max() / x.abs().max().clamp(min=1e-30))
        for x, y in zip(ours, theirs, strict=True)
        if x.is_floating_point() and x.numel() and x.shape == y.shape
    )


def eager_weights(oracle: nn.Module, run: Callable[..., Any]) -> tuple[list[Tensor], Any]:
    """What looks like weights in what the parts of an eager model return, and its output."""
    found: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def look(_module: nn.Module, _args: tuple, out: Any) -> None:
        parts = out if isinstance(out, tuple | list) else tensors(out)
        for part in parts:
            if isinstance(part, Tensor) and part.ndim >= 3 and part.is_floating_point():
                found.setdefault((part.data_ptr(), tuple(part.shape)), part.detach())

    plain = None
    handles = [module.register_forward_hook(look) for module in oracle.modules()]
    try:
        with torch.no_grad():
            try:
                run(output_attentions=True)
            except Exception:
                found.clear()
            plain = run()
    except Exception:
        found.clear()  # without eager attention, outputs are the evidence
    finally:
        for handle in handles:
            handle.remove()
    return [t for t in found.values() if _is_weights(t)], plain


def _is_weights(t: Tensor) -> bool:
    return bool((t >= 0).all() and (t <= 1 + 1e-3).all()) and t.numel() > 0


def judge(trace: Trace, weights: list[Tensor], *, is_other: bool) -> dict[str, Any]:
    """How every site compares with the model's own weights, or else with its output.

    Where eager attention `is_other` attention, its outputs differ, only the output can tell.
    """
    if len(trace.runs) == 0:
        return {"status": "refused", "reason": "no run was recorded"}
    sites = [site for run in trace.runs for site in run.sites.values()]
    refusals = {name: why for run in trace.runs for name, why in run.refusals.items()}
    by = {"weights": 0, "output": 0}
    worst = {"weights": 0.0, "output": 0.0}
    spread, wrong = 0.0, {}
    for site in sites:
        derived = _weights(site)
        filled = derived.sum(-1) > 0.5
        spread = max(spread, _spread(derived))
        near = NEAR[site.q.dtype]
        apart, index = _nearest(derived, filled, site.keys.startswith("sink"), weights)
        kind = "weights"
        if index is None or (is_other and apart > near):
            kind, apart = "output", _from_output(site, derived, filled)
        else:
            weights = weights[:index] + weights[index + 1 :]  # each serves one site
        if apart is None:
            wrong[site.name] = "neither weights nor an output to compare with"
            continue
        by[kind] += 1
        worst[kind] = max(worst[kind], apart)
        if not apart <= near:
            wrong[site.name] = f"{kind} differ by {apart:.2g}"
    found = {"sites": len(sites), "by": by, "worst": worst, "spread": spread, "other": is_other}
    if wrong:
        return {"status": "wrong", "reason": f"{wrong}", **found}
    if refusals:
        return {"status": "refused", "reason": "sites", "refusals": refusals, **found}
    if not sites:
        return {"status": "refused", "reason": "no site", **found}
    return {"status": "exact", **found}


def _weights(site: Site) -> Tensor:
    """The weights of all sequences at once, (B, H, L, S)."""
    L, S = site.shape[2:]
    rows, cols = slice(0, L), slice(0, S)
    return attention_tile(site.q, site.k, site.lse, rows, cols, **site.options)


def _nearest(
    derived: Tensor, filled: Tensor, has_sink: bool, weights: list[Tensor]
) -> tuple[float, int | None]:
    """The closest of the model's own weights, and its place in the list."""
    derived = derived[..., int(has_sink) :]
    if has_sink:  # some return weights without the sink's part
        alone = derived / derived.sum(-1, keepdim=True).clamp(min=1e-30)
        return min(_nearest(d, filled, False, weights) for d in (derived, alone))
    mean = derived.mean(1, keepdim=True).expand_as(derived)  # of heads: some return no more
    best: tuple[float, int | None] = (float("inf"), None)
    for i, theirs in enumerate(weights):
        for form in _forms(theirs, derived):
            is_mean = form.shape[1] > 1 and bool((form == form[:, :1]).all())
            apart = ((mean if is_mean else derived) - form).abs().amax(-1).where(filled, 0.0)
            most = float(apart.max()) if apart.numel() else 0.0
            if most < best[0]:
                best = most, i
    return best


def _forms(theirs: Tensor, derived: Tensor) -> Iterator[Tensor]:
    """The ways in which a tensor can be read as weights of this shape."""
    if theirs.ndim == 3:
        if theirs.numel() == derived.numel() and theirs.shape[1:] == derived.shape[2:]:
            yield theirs.reshape(derived.shape)
        elif theirs.shape == (len(derived), *derived.shape[2:]):
            yield theirs[:, None].expand_as(derived)
        return
    if theirs.ndim > 4:
        theirs = theirs.flatten(0, -4)  # windows are sequences of their own
    if theirs.ndim == 4:
        for order in ((0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 1, 3), (0, 2, 3, 1)):
            if theirs.permute(order).shape == derived.shape:
                yield theirs.permute(order)


def _from_output(site: Site, derived: Tensor, filled: Tensor) -> float | None:
    if site.out is None:
        return None
    times = site.q.shape[1] // site.v.shape[1]
    v = site.v.double().repeat_interleave(times, dim=1)
    apart = (derived.double() @ v - site.out.double()).abs().amax(-1).where(filled, 0.0)
    return float(apart.max() / v.abs().max().clamp(min=1e-30)) if apart.numel() else 0.0


def _spread(derived: Tensor) -> float:
    """How far weights are from those of somebody who looks at all open keys alike."""
    is_open = derived > 0
    even = is_open / is_open.sum(-1, keepdim=True).clamp(min=1)
    return float((derived - even).abs().max()) if derived.numel() else 0.0
