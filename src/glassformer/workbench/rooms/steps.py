"""Steps: one row of one head with every operand, for the page to compute with."""

import base64
import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.block_rows import BlockRow, Projection, check_row, read_block_row
from glassformer.errors import TraceError
from glassformer.functional.arithmetic import RowArithmetic
from glassformer.layers import FeedForward
from glassformer.models.stack import Stack
from glassformer.render.tokens import next_tokens, token_names
from glassformer.tracing import Site
from glassformer.tracing.norm_form import NormForm
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory, Reading
from glassformer.workbench.rooms.step_list import list_steps
from glassformer.workbench.wire.steps import FeedForwardRequest, StepsRequest

MOST_KEYS = 1024  # beyond, the strongest ones; the others are one
STRONGEST = 256
MOST_NUMBERS = 1 << 16  # of one matrix of a head: 64 × 1024
MOST_NEURONS = 1 << 20  # numbers of a feed-forward matrix
MOST_COLUMNS = 1 << 22  # cells of which the softmax over queries is taken


def describe_steps(asked: StepsRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """Every operand of one row of one head, and what each step does with them."""
    reading = memory.reading(asked, progress)
    site = reading.trace[asked.site]
    check_row(site, asked.head, asked.query)
    row = site.row(asked.head, asked.query)
    kept = _choose_keys(row)
    found = {
        **_describe_place(reading, site, asked),
        **_pack_attention(site, asked.head, row, kept),
    }
    block = _read_block(reading, asked)
    if block is not None:
        found |= _pack_block(block, kept)
    progress(1.0)
    return {**found, "steps": list_steps(site, row, block)}


def pack_feed_forward(
    asked: FeedForwardRequest, memory: Memory, progress: Progress
) -> dict[str, Any]:
    """The matrices of the feed-forward network after a site, where they are not too large."""
    reading = memory.reading(asked, progress)
    site = reading.trace[asked.site]
    stack, layer, _ = site.name.split(".", 2)
    found = getattr(reading.source, stack, None)
    if not isinstance(found, Stack):
        raise TraceError(f"The feed-forward network after {site.name} is not known.")
    module = found.blocks[int(layer)].feed_forward
    assert isinstance(module, FeedForward)
    if not _is_small(module):
        F, C = module.up.weight.shape
        raise TraceError(
            f"Matrices of up to {MOST_NEURONS:,} numbers are sent; W_up of this feed-forward "
            f"network has {F:,} × {C:,}."
        )
    return {
        name: _pack_matrix(Projection(linear.weight.detach(), _bias(linear)), MOST_NEURONS)
        for name, linear in (("up", module.up), ("down", module.down))
    }


def _read_block(reading: Reading, asked: StepsRequest) -> BlockRow | None:
    """The block around the row; None where only its operands were recorded."""
    stack = asked.site.split(".")[0]
    found = getattr(reading.source, stack, None)
    if not isinstance(found, Stack) or found.config.latent is not None:
        return None  # a saved trace, a model of another library, or keys made of latents
    return read_block_row(
        reading.model, reading.trace, asked.site, head=asked.head, query=asked.query
    )


def _describe_place(reading: Reading, site: Site, asked: StepsRequest) -> dict[str, Any]:
    queries, _ = token_names(reading.trace, site)
    return {
        "site": site.name,
        "kind": "cross" if site.name.endswith(".cross") else "self",
        "head": asked.head,
        "key_head": asked.head // (site.n_heads // site.k.shape[1]),
        "query": asked.query,
        "query_label": queries[asked.query],
        "next_label": next_tokens(reading.trace, site)[asked.query],
        "key_labels": token_names(reading.trace, site)[1],
        "n_keys": site.shape[3],
    }


def _choose_keys(row: RowArithmetic) -> list[int]:
    """All keys, or of many the strongest, in the order of the text."""
    S = len(row.dots)
    if S <= MOST_KEYS:
        return list(range(S))
    return sorted(row.weights.topk(STRONGEST).indices.tolist())


def _pack_attention(site: Site, head: int, row: RowArithmetic, kept: list[int]) -> dict[str, Any]:
    assert row.q is not None and row.k is not None and row.v is not None
    allowed = row.allowed & row.bias.isfinite()
    bias = row.bias.where(row.bias.isfinite(), 0.0)
    return {
        "keys": kept,
        "others": _gather_others(row, kept),
        "scale": row.scale,
        "softcap": row.softcap,
        "head_dim": len(row.q),
        "allowed": allowed[kept].tolist(),
        "bias": None if site.bias is None else pack(bias[kept]),
        "column_lse": _column_lse(site, head, kept),
        "q": pack(row.q),
        "k": pack(row.k[kept]),
        "v": pack(row.v[kept]),
    }


def _gather_others(row: RowArithmetic, kept: list[int]) -> dict[str, Any] | None:
    """The keys that are not sent, as one: their log-sum-exp and their weighted mean value."""
    assert row.v is not None
    if len(kept) == len(row.dots):
        return None
    is_other = torch.ones(len(row.dots), dtype=torch.bool)
    is_other[kept] = False
    lse = float(row.scores.cpu()[is_other].logsumexp(-1))
    shares = row.scores.cpu()[is_other].softmax(-1).nan_to_num(0.0)
    return {
        "n": int(is_other.sum()),
        "lse": lse if math.isfinite(lse) else None,
        "out": pack(shares @ row.v.cpu()[is_other]),
    }


def _column_lse(site: Site, head: int, kept: list[int]) -> list[float | None] | None:
    """The log-sum-exp of each key's column of scores: what softmax over queries divides by."""
    _, _, L, S = site.shape
    if L * S > MOST_COLUMNS:
        return None
    weights, lse = site.weights(head=head), site.lse[0, site._index(head)]
    scores = weights.double().log() + lse.double()[:, None]  # of a weight 0: −∞
    found = scores.logsumexp(0)[kept].tolist()
    return [each if math.isfinite(each) else None for each in found]


def _pack_block(block: BlockRow, kept: list[int]) -> dict[str, Any]:
    network = block.feed_forward
    n = len(kept) * block.inputs.shape[1]
    name = block.site.name
    return {
        "x": pack(block.x),
        "norm": _pack_norm(block.norm),
        "after_norm": _pack_norm(block.after_norm),
        "inputs": pack(block.inputs[kept]) if n <= 4 * MOST_NUMBERS else None,
        "w_q": _pack_matrix(block.q, MOST_NUMBERS),
        "w_k": _pack_matrix(block.k, MOST_NUMBERS),
        "w_v": _pack_matrix(block.v, MOST_NUMBERS),
        "w_o": _pack_matrix(block.o, MOST_NUMBERS),
        "projected": pack(block.projected),
        "q_norm": _pack_norm(block.q_norm),
        "k_norm": _pack_norm(block.k_norm),
        "rotation": None
        if block.rotation is None
        else {
            "cos": pack(block.rotation.cos),
            "sin": pack(block.rotation.sin),
            "layout": block.rotation.layout,
        },
        "outs": pack(block.outs),
        "rest": pack(block.rest),
        "added": pack(block.added),
        "end": pack(block.end),
        "next_site": None if network is not None else name.rpartition(".")[0] + ".cross",
        "feed_forward": None
        if network is None
        else {
            "norm": _pack_norm(network.norm),
            "after_norm": _pack_norm(network.after),
            "activation": network.module.activation,
            "read": pack(network.read),
            "up": pack(network.up),
            "gate": None if network.gate is None else pack(network.gate),
            "hidden": pack(network.hidden),
            "added": pack(network.added),
            "end": pack(network.end),
            "has_matrices": _is_small(network.module),
        },
    }


def pack(tensor: Tensor) -> dict[str, Any]:
    """A tensor in base64: float32 where that is all of it, else float64."""
    values = tensor.detach().cpu().contiguous()
    if not values.isfinite().all():
        raise TraceError("These numbers are not all finite, so their steps cannot be followed.")
    is_exact = torch.equal(values.float().double(), values.double())
    name, form = ("float32", "<f4") if is_exact else ("float64", "<f8")
    data = values.double().numpy().astype(form).tobytes()
    return {"shape": list(values.shape), name: base64.b64encode(data).decode("ascii")}


def _pack_norm(norm: NormForm | None) -> dict[str, Any] | None:
    if norm is None:
        return None
    return {
        "is_centred": norm.is_centred,
        "eps": norm.eps,
        "gain": None if norm.gain is None else pack(norm.gain),
        "bias": None if norm.bias is None else pack(norm.bias),
    }


def _pack_matrix(matrix: Projection, most: int) -> dict[str, Any]:
    """A matrix, of a wide one the first columns."""
    rows, columns = matrix.weight.shape
    n = min(columns, max(1, most // rows))
    return {
        "weight": pack(matrix.weight[:, :n]),
        "bias": None if matrix.bias is None else pack(matrix.bias),
        "columns": columns,
    }


def _is_small(module: FeedForward) -> bool:
    return module.up.weight.numel() <= MOST_NEURONS


def _bias(linear: torch.nn.Linear) -> Float[Tensor, " N"] | None:
    return None if linear.bias is None else linear.bias.detach()
