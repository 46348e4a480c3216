"""Statistics of packed batches: by one launch of the Triton kernels, or sequence by sequence."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.biases import ALiBi
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring, check_scoring
from glassformer.functional.masks import And, Mask, Not, Or, Prefix, as_mask
from glassformer.functional.statistics import cuda
from glassformer.functional.statistics.layout import Packed
from glassformer.functional.statistics.measuring import add_sinks, measure, share_of_sinks
from glassformer.functional.statistics.streaming import Top


def measure_packed(
    q: Float[Tensor, "1 H L D"],
    k: Float[Tensor, "_ K _ D"],
    packed: Packed,
    mask: Mask | Tensor | None,
    within: tuple[Mask, ...],
    options: dict[str, Any],
    asked: dict[str, Any],
    *,
    sinks: Float[Tensor, " H"] | None,
    lse: Float[Tensor, "1 H L"] | None,
    progress: Callable[[float], None] | None,
) -> dict[str, Any]:
    """The fields of `AttentionStatistics` of all sequences, side by side."""
    scoring = _whole_scoring(q, k, packed, mask, options)
    whole = {name: value for name, value in asked.items() if name != "distance"}
    whole |= {"within": tuple(as_mask(part) for part in within), "packed": packed}
    if scoring is not None and cuda.refusal(q, scoring, **whole) is None:
        if sinks is not None and lse is None:
            lse = add_sinks(cuda.row_lse(q, k, scoring, packed), sinks)
        found = cuda.measure(
            q, k, scoring, **whole, distance=asked["distance"], lse=lse, progress=progress
        )
        return found if sinks is None else found | share_of_sinks(found, sinks)
    rows, keys = (cast(Tensor, s).tolist() for s in (packed.query_starts, packed.key_starts))
    parts = []
    for i, (own, ends) in enumerate(zip(pairwise(rows), pairwise(keys), strict=True)):
        own_q, own_k = q[:, :, slice(*own)], packed.keys_of(k, i, *ends)
        S = own_k.shape[2]
        alone = check_scoring(own_q, own_k, mask=_shorten(mask, S), **options)
        inside = (cast(Mask, _shorten(part, S)) for part in within)
        parts.append(
            measure(
                own_q,
                own_k,
                alone,
                **asked,
                within=tuple(part.fit_to(alone.extent, q.device) for part in inside),
                sinks=sinks,
                lse=None if lse is None else lse[:, :, slice(*own)],
                progress=None,
            )
        )
        if progress is not None:
            progress((i + 1) / packed.n_sequences)
    return {name: _join([part[name] for part in parts]) for name in parts[0]}


def _whole_scoring(
    q: Tensor, k: Tensor, packed: Packed, mask: Mask | Tensor | None, options: dict[str, Any]
) -> Scoring | None:
    """The scoring of all sequences at once; None if a bias has cells of its own."""
    if options["bias"] is not None and not isinstance(options["bias"], ALiBi):
        return None
    checked = check_scoring(q, k[:1], mask=None, **options)
    extent = Extent(1, q.shape[1], q.shape[2], cast(int, packed.n_keys))
    return checked._replace(extent=extent, mask=None if mask is None else as_mask(mask))


def _shorten(mask: Mask | Tensor | None, n_keys: int) -> Mask | None:
    """A prefix that is longer than a short sequence covers all of it."""
    if mask is None:
        return None
    mask = as_mask(mask)
    if isinstance(mask, And | Or):
        return replace(mask, a=_shorten(mask.a, n_keys), b=_shorten(mask.b, n_keys))
    if isinstance(mask, Not):
        return replace(mask, a=_shorten(mask.a, n_keys))
    if isinstance(mask, Prefix) and isinstance(mask.length, int):
        return Prefix(min(mask.length, n_keys))
    return mask


def _join(parts: list[Any]) -> Any:
    """One result from those of all sequences, side by side."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.cat(parts, dim=2)
    if isinstance(first, tuple):
        return tuple(torch.cat(same, dim=2) for same in zip(*parts, strict=True))
    if isinstance(first, Top):
        widest = max(part.indices.shape[-1] for part in parts)
        room = [(0, widest - part.indices.shape[-1]) for part in parts]
        pad = torch.nn.functional.pad
        indices = [pad(p.indices, n, value=-1) for p, n in zip(parts, room, strict=True)]
        weights = [pad(p.weights, n) for p, n in zip(parts, room, strict=True)]
        return Top(torch.cat(indices, dim=2), torch.cat(weights, dim=2))
    return None
