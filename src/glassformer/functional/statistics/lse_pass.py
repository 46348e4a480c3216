"""The Triton kernel of the first pass: the log-sum-exp of every row, a block of queries each."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl

from glassformer.functional.statistics.tile_functions import (
    FREE,
    LN2,
    NOBODY,
    cap_scores,
    find_in_cache,
    find_sequence,
    keep_best,
    may_see,
    rank_keys,
)


@no_type_check
@triton.jit(do_not_specialize=(*FREE, "n_blocks"))
def lse_kernel(  # noqa: PLR0912, PLR0915  (a kernel is one function)
    q,
    k,
    lse,
    strongest,
    limits,
    limits_batch,
    slopes,
    q_batch,
    q_head,
    q_row,
    k_batch,
    k_head,
    k_row,
    H,
    group,
    query_starts,
    key_starts,
    n_sequences,
    steps,
    table,
    table_row,
    L,
    S,
    n_blocks,
    n_parts,
    scale,
    cap,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    ALIBI: tl.constexpr,
    SOFTCAP: tl.constexpr,
    PRECISION: tl.constexpr,
    PACKED: tl.constexpr,
    PAGE: tl.constexpr,
    TOP: tl.constexpr,
):
    """The log-sum-exp of each row over one part of the keys: (part, B, H, L), by online softmax.

    PACKED: B is 1, and L and S are those of all sequences. PAGE: the size of a cache's blocks.
    TOP: how many of the strongest keys to keep, (part, B, H, L, TOP) in any order; 0 for none.
    """
    program = tl.program_id(0)
    part = program % n_parts
    # Heads take turns, and with a causal mask the longest blocks come first: nothing long is last.
    n_heads = tl.num_programs(0) // n_parts // n_blocks
    head = (program // n_parts) % n_heads
    block = n_blocks - 1 - program // n_parts // n_heads
    batch, h = head // H, head % H

    n_rows = L
    if PACKED:
        batch, block = find_sequence(block, query_starts, n_sequences, steps, ROWS)
        row0, key0 = tl.load(query_starts + batch), tl.load(key_starts + batch)
        L = tl.load(query_starts + batch + 1) - row0
        S = tl.load(key_starts + batch + 1) - key0
        q += row0.to(tl.int64) * q_row
        if PAGE == 0:
            k += key0.to(tl.int64) * k_row
        table += batch.to(tl.int64) * table_row
    else:
        row0 = 0
        q += batch.to(tl.int64) * q_batch
        k += batch.to(tl.int64) * k_batch
    q += h.to(tl.int64) * q_head
    k += (h // group).to(tl.int64) * k_head

    limits += batch * limits_batch
    low, high = tl.load(limits), tl.load(limits + 1)
    first_key, stop_key = tl.load(limits + 2), tl.load(limits + 3)
    first_row, stop_row = tl.load(limits + 4), tl.load(limits + 5)
    if PACKED:  # the limits are those of a square without end: its diagonal begins at S − L
        low, high = low + S - L, high + S - L
        stop_key, stop_row = tl.minimum(stop_key, S), tl.minimum(stop_row, L)

    start = block * ROWS
    rows = start + tl.arange(0, ROWS)
    columns = tl.arange(0, KEYS)
    d = tl.arange(0, WIDTH)
    q_tile = tl.load(
        q + rows.to(tl.int64)[:, None] * q_row + d[None, :],
        mask=(rows < L)[:, None] & (d < D)[None, :],
        other=0.0,
    )
    slope = tl.load(slopes + h) if ALIBI else 0.0

    # Tiles of keys: first … full … after … stop. All cells are allowed in full … after.
    begin, end = tl.maximum(start, first_row), tl.minimum(start + ROWS, stop_row)
    first = tl.maximum(begin + low, first_key) // KEYS
    stop = tl.cdiv(tl.minimum(end + high, stop_key), KEYS)
    stop = tl.where(begin < end, tl.maximum(stop, first), first)
    full = tl.cdiv(tl.maximum(start + ROWS - 1 + low, first_key), KEYS)
    full = tl.minimum(tl.maximum(full, first), stop)
    after = tl.minimum(start + high + 1, stop_key) // KEYS
    after = tl.minimum(tl.maximum(after, full), stop)
    after = tl.where((start >= first_row) & (start + ROWS <= stop_row), after, full)

    most = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    if TOP > 0:
        nobody = tl.arange(0, TOP).to(tl.int64) + NOBODY
        best = tl.zeros([ROWS, TOP], tl.int64) + nobody[None, :]
    for careful in tl.static_range(2):
        n = (full - first + stop - after) if careful else after - full
        for i in range(n * part // n_parts, n * (part + 1) // n_parts):
            tile = full + i
            if careful:
                tile = tl.where(i < full - first, first + i, after + i - (full - first))
            keys = tile * KEYS + columns
            source = k + (tile * KEYS).to(tl.int64) * k_row
            inside = (d < D)[None, :] & ((keys < S)[:, None] if careful else True)
            places = source + columns[:, None] * k_row
            if PAGE > 0:
                places = k + find_in_cache(keys, keys < S, table, k_batch, k_row, PAGE)[:, None]
            k_tile = tl.load(places + d[None, :], mask=inside, other=0.0)
            products = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)
            if careful or ALIBI or SOFTCAP:
                scores = cap_scores(products, scale, cap, SOFTCAP)
                if ALIBI:
                    away = tl.abs(rows[:, None] + (S - L) - keys[None, :])
                    scores -= slope * away.to(tl.float32)
                if careful:
                    seen = may_see(rows, keys, low, high, first_key, stop_key, first_row, stop_row)
                    scores = tl.where(seen, scores, float("-inf"))
                higher = tl.maximum(most, tl.max(scores, 1))
            else:
                scores = products * scale  # one instruction with what is subtracted below
                higher = tl.maximum(most, tl.max(products, 1) * scale)
            if TOP > 0:
                ranks = rank_keys(scores, keys)
                if careful:
                    ranks = tl.where(seen, ranks, NOBODY)
                best = keep_best(best, ranks)
            finite = tl.where(higher == float("-inf"), 0.0, higher)
            weights = tl.exp2(scores - finite[:, None])
            total = total * tl.exp2(most - finite) + tl.sum(weights, 1)
            most = higher
    empty = total == 0
    found = (most + tl.log2(tl.where(empty, 1.0, total))) * LN2
    target = (part * n_heads + head).to(tl.int64) * n_rows + row0
    tl.store(lse + target + rows, tl.where(empty, float("-inf"), found), mask=rows < L)
    if TOP > 0:
        spots = (target + rows)[:, None] * TOP + tl.arange(0, TOP)[None, :]
        tl.store(strongest + spots, best, mask=(rows < L)[:, None])
