"""The weights of a site put together: what probes found, what writes to the stream, its norms."""

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.reading import Reading
from glassformer.analysis.site_weights import SiteWeights, carry, fold_reading
from glassformer.analysis.weight_probes import Probed
from glassformer.errors import TraceError
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Part, Writing
from glassformer.tracing.trace import Trace


def assemble_site(name: str, found: Probed, reading: Reading, trace: Trace) -> SiteWeights:
    """The matrices of a site with the norms around it folded in."""
    folded = {
        operand: fold_reading(reading.query_norm if operand == "q" else reading.key_norm, *each)
        for operand, each in found.operands.items()
    }
    dtype = torch.promote_types(trace[name].q.dtype, torch.float32)
    folded = {operand: (w.to(dtype), b.to(dtype)) for operand, (w, b) in folded.items()}
    refusals, frozen, o = dict(found.refusals), list(found.frozen), None
    try:
        writing = _require_writing(trace, reading.part)
        o = _fold_writing(writing, trace[name].n_heads).to(dtype)
        if any(step.norm is not None for step in writing.then):
            frozen.append("the size that the norm after it divides by is left out")
    except TraceError as error:
        refusals["o"] = str(error)
    return SiteWeights(
        name=name,
        stack=reading.place.stack,
        n_heads=trace[name].n_heads,
        scale=found.scale,
        q=folded["q"][0],
        k=folded["k"][0],
        v=folded["v"][0],
        o=o,
        q_bias=folded["q"][1],
        k_bias=folded["k"][1],
        v_bias=folded["v"][1],
        query_norm=reading.query_norm,
        key_norm=reading.key_norm,
        positions=_find_positions(found, trace[name]),
        frozen=tuple(frozen),
        refusals=refusals,
        is_cross=reading.place.is_cross,
    )


def _find_positions(found: Probed, site: Site) -> str | None:
    """By what scores know of positions; a sink, one more key than there are tokens, is none."""
    has_sink = site.shape[3] != site.shape[2]
    if found.is_rotary:
        return "rotary"
    return "bias" if site.bias is not None and not has_sink else None


def _require_writing(trace: Trace, part: Part) -> Writing:
    """The matrix by which a part writes; the heads must add up to what the part has added."""
    if part.writing is None:
        raise TraceError(f"No single matrix writes {part.name} to the stream.")
    assert part.site is not None
    site, writing = trace[part.site], part.writing
    heads = []
    for sequence in range(site.shape[0]):
        v = site.v[sequence].double().repeat_interleave(site.n_heads // site.v.shape[1], dim=0)
        heads.append((site.weights(sequence=sequence).double() @ v).transpose(0, 1).flatten(1))
    mixed = torch.stack(heads)  # B L HE
    if mixed.shape[-1] == writing.weight.shape[1]:
        slices, rest = writing.split(mixed, site.n_heads)
        apart = (slices.sum(0) + rest - part.value.double()).abs().amax()
        bound = torch.finfo(part.value.dtype).eps ** 0.5 * part.value.abs().amax()
        if bool(apart <= bound):
            return writing
    raise TraceError(
        f"Between the heads of {part.name} and the stream lies more than a matrix, so that their "
        "OV circuits are no matrices."
    )


def _fold_writing(writing: Writing, n_heads: int) -> Float[Tensor, "H C E"]:
    """W_O by head, with what happens to its result folded in."""
    columns = carry(writing.weight.double().mT, list(writing.then))  # HE C
    return columns.unflatten(0, (n_heads, -1)).mT.contiguous()
