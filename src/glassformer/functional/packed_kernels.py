"""Triton kernels of attention in short packed texts (packed_texts.py says when they are used).

    row   a b c d e A B C …     a program takes one text and one head: its keys and queries are a
          └─ text ┘ └ text      tile or a few, and nothing is shared with other programs

Longer texts go through tiles of BLOCK × BLOCK one after the other. Scores are in units of log 2,
so that exp2 turns them into weights.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl


@no_type_check
@triton.jit
def _load_tile(base, places, is_there, stride, D: tl.constexpr, WIDTH: tl.constexpr):
    d = tl.arange(0, WIDTH)
    mask = is_there[:, None] & (d < D)[None, :]
    return tl.load(base + places[:, None].to(tl.int64) * stride + d[None, :], mask=mask, other=0.0)


@no_type_check
@triton.jit
def _store_tile(base, places, is_there, stride, tile, D: tl.constexpr, WIDTH: tl.constexpr):
    d = tl.arange(0, WIDTH)
    mask = is_there[:, None] & (d < D)[None, :]
    where = base + places[:, None].to(tl.int64) * stride + d[None, :]
    tl.store(where, tile.to(base.dtype.element_ty), mask=mask)


@no_type_check
@triton.jit
def _is_kept(seed, line, columns, pitch, dropout):
    """Which weights dropout keeps: the same in the backward pass."""
    return tl.rand(seed, line[:, None] * pitch + columns[None, :], n_rounds=7) >= dropout


@no_type_check
@triton.jit
def packed_forward_kernel(
    q,
    k,
    v,
    out,
    lse,
    query_starts,
    key_starts,
    seed,
    q_row,
    q_head,
    k_row,
    k_head,
    v_row,
    v_head,
    out_row,
    N,
    group,
    pitch,
    scale,
    dropout,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    DROPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One head of one text: outputs, and the logarithm of each query's sum of exponentials."""
    text, h = tl.program_id(0), tl.program_id(1)
    first, key0 = tl.load(query_starts + text), tl.load(key_starts + text)
    n = tl.load(query_starts + text + 1) - first
    m = tl.load(key_starts + text + 1) - key0
    q += first.to(tl.int64) * q_row + h * q_head
    k += key0.to(tl.int64) * k_row + (h // group) * k_head
    v += key0.to(tl.int64) * v_row + (h // group) * v_head
    out += first.to(tl.int64) * out_row + h * D
    lse += h.to(tl.int64) * N + first
    drawn = tl.load(seed) if DROPS else 0
    local = tl.arange(0, BLOCK)
    for i0 in range(0, n, BLOCK):
        rows = i0 + local
        q_tile = _load_tile(q, rows, rows < n, q_row, D, WIDTH)
        highest = tl.full([BLOCK], -float("inf"), tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        sums = tl.zeros([BLOCK, WIDTH], tl.float32)
        stop = tl.minimum(m, i0 + BLOCK) if CAUSAL else m
        for j0 in range(0, stop, BLOCK):
            columns = j0 + local
            k_tile = _load_tile(k, columns, columns < m, k_row, D, WIDTH)
            v_tile = _load_tile(v, columns, columns < m, v_row, D, WIDTH)
            scores = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION) * scale
            seen = (columns < m)[None, :]
            if CAUSAL:
                seen = seen & (columns[None, :] <= rows[:, None])
            scores = tl.where(seen, scores, -float("inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            shrink = tl.exp2(highest - higher)
            total = total * shrink + tl.sum(weights, 1)
            if DROPS:
                kept = _is_kept(drawn, h * N + first + rows, columns, pitch, dropout)
                weights = tl.where(kept, weights / (1.0 - dropout), 0.0)
            part = tl.dot(weights.to(v_tile.dtype), v_tile, input_precision=PRECISION)
            sums = sums * shrink[:, None] + part
            highest = higher
        _store_tile(out, rows, rows < n, out_row, sums / total[:, None], D, WIDTH)
        tl.store(lse + rows, highest + tl.log2(total), mask=rows < n)


@no_type_check
@triton.jit
def packed_backward_kernel(  # noqa: PLR0915  (a kernel is one function)
    q,
    k,
    v,
    out,
    lse,
    d_out,
    d_q,
    d_k,
    d_v,
    query_starts,
    key_starts,
    seed,
    q_row,
    q_head,
    k_row,
    k_head,
    v_row,
    v_head,
    out_row,
    d_out_row,
    d_out_head,
    d_k_row,
    N,
    group,
    pitch,
    scale,
    to_scores,
    dropout,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    DROPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One head of keys and values of one text, and the heads of queries that share it.

    Where the keys are one tile, a single pass gives all three gradients; otherwise a second one
    gives that of the queries. `scale` makes logarithms of the products, `to_scores` scores.
    """
    text, shared = tl.program_id(0), tl.program_id(1)
    first, key0 = tl.load(query_starts + text), tl.load(key_starts + text)
    n = tl.load(query_starts + text + 1) - first
    m = tl.load(key_starts + text + 1) - key0
    q += first.to(tl.int64) * q_row
    d_out += first.to(tl.int64) * d_out_row
    out += first.to(tl.int64) * out_row
    d_q += first.to(tl.int64) * out_row
    lse += first
    k += key0.to(tl.int64) * k_row + shared * k_head
    v += key0.to(tl.int64) * v_row + shared * v_head
    d_k += key0.to(tl.int64) * d_k_row + shared * D
    d_v += key0.to(tl.int64) * d_k_row + shared * D
    drawn = tl.load(seed) if DROPS else 0
    local = tl.arange(0, BLOCK)
    for j0 in range(0, m, BLOCK):
        columns = j0 + local
        k_tile = _load_tile(k, columns, columns < m, k_row, D, WIDTH)
        v_tile = _load_tile(v, columns, columns < m, v_row, D, WIDTH)
        k_sums = tl.zeros([BLOCK, WIDTH], tl.float32)
        v_sums = tl.zeros([BLOCK, WIDTH], tl.float32)
        for h in range(shared * group, shared * group + group):
            for i0 in range(j0 if CAUSAL else 0, n, BLOCK):
                rows = i0 + local
                there = rows < n
                q_tile = _load_tile(q + h * q_head, rows, there, q_row, D, WIDTH)
                above = _load_tile(d_out + h * d_out_head, rows, there, d_out_row, D, WIDTH)
                own = _load_tile(out + h * D, rows, there, out_row, D, WIDTH)
                mean = tl.sum(above.to(tl.float32) * own.to(tl.float32), 1)
                known = tl.load(lse + h * N + rows, mask=there, other=0.0)
                weights, d_scores = _differentiate(
                    q_tile, k_tile, v_tile, above, mean, known, rows, columns, n, m, scale,
                    drawn, h * N + first, pitch, dropout, CAUSAL, DROPS, PRECISION,
                )  # fmt: skip
                turned = tl.trans(weights.to(above.dtype))
                v_sums += tl.dot(turned, above, input_precision=PRECISION)
                d_scores = d_scores.to(q_tile.dtype)
                k_sums += tl.dot(tl.trans(d_scores), q_tile, input_precision=PRECISION)
                if m <= BLOCK:
                    mine = tl.dot(d_scores, k_tile, input_precision=PRECISION) * to_scores
                    _store_tile(d_q + h * D, rows, there, out_row, mine, D, WIDTH)
        _store_tile(d_k, columns, columns < m, d_k_row, k_sums * to_scores, D, WIDTH)
        _store_tile(d_v, columns, columns < m, d_k_row, v_sums, D, WIDTH)
    if m > BLOCK:
        for h in range(shared * group, shared * group + group):
            for i0 in range(0, n, BLOCK):
                rows = i0 + local
                there = rows < n
                q_tile = _load_tile(q + h * q_head, rows, there, q_row, D, WIDTH)
                above = _load_tile(d_out + h * d_out_head, rows, there, d_out_row, D, WIDTH)
                own = _load_tile(out + h * D, rows, there, out_row, D, WIDTH)
                mean = tl.sum(above.to(tl.float32) * own.to(tl.float32), 1)
                known = tl.load(lse + h * N + rows, mask=there, other=0.0)
                q_sums = tl.zeros([BLOCK, WIDTH], tl.float32)
                stop = tl.minimum(m, i0 + BLOCK) if CAUSAL else m
                for j0 in range(0, stop, BLOCK):
                    columns = j0 + local
                    k_tile = _load_tile(k, columns, columns < m, k_row, D, WIDTH)
                    v_tile = _load_tile(v, columns, columns < m, v_row, D, WIDTH)
                    _, d_scores = _differentiate(
                        q_tile, k_tile, v_tile, above, mean, known, rows, columns, n, m, scale,
                        drawn, h * N + first, pitch, dropout, CAUSAL, DROPS, PRECISION,
                    )  # fmt: skip
                    d_scores = d_scores.to(k_tile.dtype)
                    q_sums += tl.dot(d_scores, k_tile, input_precision=PRECISION)
                _store_tile(d_q + h * D, rows, there, out_row, q_sums * to_scores, D, WIDTH)


@no_type_check
@triton.jit
def _differentiate(
    q_tile,
    k_tile,
    v_tile,
    above,
    mean,
    known,
    rows,
    columns,
    n,
    m,
    scale,
    drawn,
    line,
    pitch,
    dropout,
    CAUSAL: tl.constexpr,
    DROPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The weights of a tile as they were used, and the gradient of its scores."""
    scores = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION) * scale
    seen = (rows < n)[:, None] & (columns < m)[None, :]
    if CAUSAL:
        seen = seen & (columns[None, :] <= rows[:, None])
    weights = tl.where(seen, tl.exp2(scores - known[:, None]), 0.0)
    d_weights = tl.dot(above, tl.trans(v_tile), input_precision=PRECISION)
    used = weights
    if DROPS:
        kept = _is_kept(drawn, line + rows, columns, pitch, dropout)
        used = tl.where(kept, weights / (1.0 - dropout), 0.0)
        d_weights = tl.where(kept, d_weights / (1.0 - dropout), 0.0)
    return used, weights * (d_weights - mean[:, None])
