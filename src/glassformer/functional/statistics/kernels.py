"""The Triton kernel of the second pass: with `lse` known, everything that follows.

    keys →   k0      k1
              ┌───────┐  A program of the kernel holds one block of keys and visits the
   queries    │ ╲     │  queries that may see it, tile by tile. What a key receives is summed in
      ↓       │   ╲   │  registers. Values per query are summed over the keys of the block and
              │     ╲ │  added to memory, and so are map cells: a block lies in one column of
              │       │  cells.
              │       │
              └───────┘  Tiles that a mask or the diagonal crosses (╲) are checked cell by cell, in
                         a separate launch; the others need no comparison at all.

Scores are in units of log 2, so that exp2 turns them into weights. cuda.py says when and how these
run; only it imports this file, and only when needed, because this file imports triton.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl

from glassformer.functional.statistics.tile_functions import (
    FREE,
    LN2,
    cap_scores,
    find_in_cache,
    find_sequence,
    may_see,
)

_NAN_BITS = tl.constexpr(0x7FC00000)
_NOTHING = tl.constexpr(-1e30)  # the logarithm of weight 0: its exp2 is 0, and 0 times it too


@no_type_check
@triton.jit(do_not_specialize=(*FREE, "M", "N", "blocks_per_cell", "observe"))
def statistics_kernel(  # noqa: PLR0912, PLR0915  (a kernel is one function)
    q,
    k,
    lse,
    per_row,
    peak,
    received,
    mass,
    maximum,
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
    M,
    N,
    blocks_per_cell,
    observe,
    n_parts,
    scale,
    cap,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    ALIBI: tl.constexpr,
    SOFTCAP: tl.constexpr,
    CELLS: tl.constexpr,
    DISTANCE: tl.constexpr,
    RAGGED: tl.constexpr,
    CAREFUL: tl.constexpr,
    PRECISION: tl.constexpr,
    PACKED: tl.constexpr,
    PAGE: tl.constexpr,
    ASK: tl.constexpr,
):
    """All other statistics of one block of keys and one part of the queries, given `lse`.

    Adds to (2, B, H, L) entropy and distance, (B, H, S) received and (B, H, M, N) mass, and raises
    (B, H, L) peak and (B, H, M, N) maximum, which are floats seen as integers.
    CELLS: how many rows of the map a tile overlaps: "none" (no map), "one", at most "two", "many".
    DISTANCE: whether to compute it, which takes a tenth of the time.
    RAGGED: the last block of a column of the map is shorter.
    PACKED: B is 1, and L and S are those of all sequences. PAGE: the size of a cache's blocks.
    ASK: "all" of this, or only what keys have "received" from the last `observe` queries of each
    sequence, or only the "mass" of each row, in the place of its entropy.
    """
    program = tl.program_id(0)
    part = program % n_parts
    # Heads take turns, and with a causal mask the longest blocks come first: nothing long is last.
    n_heads = tl.num_programs(0) // n_parts // (N * blocks_per_cell)
    head = (program // n_parts) % n_heads
    block = program // n_parts // n_heads
    batch, h = head // H, head % H

    column = block // blocks_per_cell
    n_rows, n_keys = L, S
    if PACKED:
        batch, block = find_sequence(block, key_starts, n_sequences, steps, KEYS)
        row0, key0 = tl.load(query_starts + batch), tl.load(key_starts + batch)
        L = tl.load(query_starts + batch + 1) - row0
        S = tl.load(key_starts + batch + 1) - key0
        k0 = block * KEYS
        k1 = tl.minimum(k0 + KEYS, S)
        q += row0.to(tl.int64) * q_row
        if PAGE == 0:
            k += key0.to(tl.int64) * k_row
        table += batch.to(tl.int64) * table_row
    else:
        row0, key0 = 0, 0
        k0 = (column.to(tl.int64) * S // N).to(tl.int32) + (block % blocks_per_cell) * KEYS
        k1 = tl.minimum(k0 + KEYS, ((column + 1).to(tl.int64) * S // N).to(tl.int32))
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
    if ASK == "received":
        first_row = tl.maximum(first_row, L - observe)

    local = tl.arange(0, KEYS)
    keys = k0 + local
    r = tl.arange(0, ROWS)
    d = tl.arange(0, WIDTH)
    if PAGE > 0:
        k_places = find_in_cache(keys, keys < k1, table, k_batch, k_row, PAGE)
    else:
        k_places = keys.to(tl.int64) * k_row
    k_tile = tl.load(
        k + k_places[:, None] + d[None, :],
        mask=(keys < k1)[:, None] & (d < D)[None, :],
        other=0.0,
    )
    slope = tl.load(slopes + h) if ALIBI else 0.0
    head = head.to(tl.int64)
    first_place = head * n_rows + row0
    cells = head * M * N + column
    height = L // M
    shift = S - L  # query i has the position of key i + shift

    # Tiles of queries: first … full … ahead … behind … after … stop. All cells are allowed in
    # full … after; queries precede all keys up to `ahead`, and follow them from `behind` on.
    whole = (k0 >= first_key) & (k1 <= stop_key)
    if PACKED:  # the last block of a sequence is checked cell by cell
        whole = whole & (k1 - k0 == KEYS)
    first_key, stop_key = tl.maximum(k0, first_key), tl.minimum(k1, stop_key)
    first = tl.maximum(tl.maximum(first_key - high, first_row), 0) // ROWS
    stop = tl.cdiv(tl.minimum(stop_key - low, stop_row), ROWS)
    stop = tl.where(first_key < stop_key, tl.maximum(stop, first), first)
    full = tl.cdiv(tl.maximum(tl.maximum(k1 - 1 - high, first_row), 0), ROWS)
    full = tl.minimum(tl.maximum(full, first), stop)
    after = tl.minimum(k0 - low + 1, stop_row) // ROWS
    after = tl.where(whole, tl.minimum(tl.maximum(after, full), stop), full)
    ahead = tl.maximum(k0 - shift, 0) // ROWS
    ahead = tl.minimum(tl.maximum(ahead, full), after)
    behind = tl.cdiv(tl.maximum(k1 - 1 - shift, 0), ROWS)
    behind = tl.minimum(tl.maximum(behind, ahead), after)

    gained = tl.zeros([4, 8, KEYS], tl.float32)
    # If a tile lies in one cell of the map, rows are pooled after they are folded: half the sums.
    LINES: tl.constexpr = 32 if CELLS == "one" and not DISTANCE else ROWS
    for span in range(3 if CAREFUL else 2):
        if CAREFUL:
            begin = tl.where(span == 0, first, tl.where(span == 1, ahead, after))
            n = tl.where(span == 0, full, tl.where(span == 1, behind, stop)) - begin
        else:
            begin = tl.where(span == 0, full, behind)
            n = tl.where(span == 0, ahead, after) - begin
        side = tl.where(span == 0, -1.0, 1.0)
        end = begin + n * (part + 1) // n_parts
        begin += n * part // n_parts
        pooled = tl.zeros([LINES, 4], tl.float32)
        highest = tl.zeros([ROWS], tl.int32)
        a = 0  # the row of the map in which the first tile starts
        if CELLS != "none":
            a = ((begin * ROWS + 1) * M - 1) // L
        cell = cells + a * N
        edge = (a + 1) * L // M
        for tile in range(begin, end):
            start = tile * ROWS
            rows = start + r
            real = rows < L if CAREFUL else r < ROWS
            source = q + start.to(tl.int64) * q_row + r[:, None] * q_row + d[None, :]
            if CAREFUL or D != WIDTH:
                q_tile = tl.load(source, mask=real[:, None] & (d < D)[None, :], other=0.0)
            else:
                q_tile = tl.load(source)
            known = tl.load(lse + first_place + rows, mask=real, other=0.0)
            known = tl.where(known == float("-inf"), 0.0, known / LN2)
            past = (rows + shift - k0).to(tl.float32)  # from the block's first key to the query

            products = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)
            scores = cap_scores(products, scale, cap, SOFTCAP)
            if CAREFUL:
                away = tl.abs(past[:, None] - local.to(tl.float32)[None, :])
                if ALIBI:
                    scores -= slope * away
                seen = may_see(rows, keys, low, high, first_key, stop_key, first_row, stop_row)
                log_weights = tl.where(seen, scores - known[:, None], _NOTHING)
            else:
                if ALIBI:
                    scores += (side * slope) * local.to(tl.float32)[None, :]
                    known += side * slope * past
                if RAGGED:
                    scores += tl.where(keys < k1, 0.0, _NOTHING)[None, :]
                log_weights = scores - known[:, None]
            weights = tl.exp2(log_weights)

            # First use the logarithms, to free their registers.
            if ASK == "all":
                surprise = tl.sum(weights * log_weights, 1) * -LN2
            if ASK != "mass":
                folded = _fold_rows(weights, ROWS, KEYS)
                gained += folded
            if DISTANCE:
                given, offset = _moments(weights, ROWS, KEYS)
                if CAREFUL:
                    far = tl.sum(weights * away, 1)
                else:
                    far = tl.sum(side * (past[:, None] * given - offset), 1)
            elif CELLS != "none":
                given = folded if CELLS == "one" else weights
                given = tl.sum(tl.sum(tl.reshape(given, [LINES, KEYS // 8, 4, 2]), 1), 2)
            if ASK == "all":
                # Nonnegative floats have the same order as their bits.
                strongest = tl.max(weights.to(tl.int32, bitcast=True), 1)
                strongest = tl.where(tl.abs(surprise) < float("inf"), strongest, _NAN_BITS)

            places = per_row + first_place + rows
            if DISTANCE:
                pairs = places[:, None] + n_heads.to(tl.int64) * n_rows * tl.arange(0, 2)[None, :]
                both = tl.join(surprise, far)  # one pass through shared memory instead of two
                tl.atomic_add(pairs, both, mask=real[:, None], sem="relaxed")
            elif ASK == "all":
                tl.atomic_add(places, surprise, mask=real, sem="relaxed")
            elif ASK == "mass":
                tl.atomic_add(places, tl.sum(weights, 1), mask=real, sem="relaxed")
            if ASK == "all":
                tl.atomic_max(peak + first_place + rows, strongest, mask=real, sem="relaxed")
            if CELLS == "many":
                spots = cells + (((rows + 1) * M - 1) // L) * N
                tl.atomic_add(mass + spots, tl.sum(given, 1), mask=real, sem="relaxed")
                tl.atomic_max(maximum + spots, strongest, mask=real, sem="relaxed")
            elif CELLS != "none":
                inside = rows < edge
                if CELLS == "two":
                    pooled += tl.where(inside[:, None], given, 0.0)
                    highest = tl.maximum(highest, tl.where(inside, strongest, 0))
                else:
                    pooled += given
                    highest = tl.maximum(highest, strongest)
                if edge <= start + ROWS:
                    _add_to_cell(mass + cell, maximum + cell, pooled, highest, ROWS, LINES)
                    cell += N
                    if CELLS == "two":
                        pooled = tl.where(inside[:, None], 0.0, given)
                        highest = tl.where(inside, 0, strongest)
                        a += 1
                        edge = (a + 1) * L // M
                    else:
                        pooled = tl.zeros([LINES, 4], tl.float32)
                        highest = tl.zeros([ROWS], tl.int32)
                        edge += height
        between = CELLS == "one" or CELLS == "two"  # noqa: PLR1714  (Triton reads no `in`)
        if between and (begin < end) & (edge <= L):
            _add_to_cell(mass + cell, maximum + cell, pooled, highest, ROWS, LINES)
    if ASK != "mass":
        total = tl.sum(tl.reshape(gained, [32, KEYS]), 0)
        target = received + head * n_keys + key0
        tl.atomic_add(target + keys, total, mask=keys < k1, sem="relaxed")


@no_type_check
@triton.jit
def _fold_rows(weights, ROWS: tl.constexpr, KEYS: tl.constexpr):
    """Sum over the rows that one thread holds: four warps, each with two groups of eight rows."""
    apart = tl.permute(tl.reshape(weights, [ROWS // 64, 4, 2, 8, KEYS]), (0, 2, 1, 3, 4))
    return tl.sum(tl.reshape(apart, [ROWS // 32, 4, 8, KEYS]), 0)


@no_type_check
@triton.jit
def _moments(weights, ROWS: tl.constexpr, KEYS: tl.constexpr):
    """Σ weight and Σ weight · (key − first key) of each row, (ROWS, 4): over a quarter of the keys.

    Keys are numbered 8 · octave + 2 · quarter + side, as the matrix units lay them out: each thread
    holds all octaves and sides of one quarter, so that its factors are compile-time constants.
    """
    apart = tl.reshape(weights, [ROWS, KEYS // 8, 4, 2])
    octaves = (tl.arange(0, KEYS // 8) * 8).to(tl.float32)
    up = tl.sum(tl.sum(apart, 3) * octaves[None, :, None], 1)
    sides = tl.sum(apart, 1)
    odd = tl.sum(sides * tl.arange(0, 2).to(tl.float32)[None, None, :], 2)
    mass = tl.sum(sides, 2)
    quarters = (tl.arange(0, 4) * 2).to(tl.float32)
    return mass, up + odd + mass * quarters[None, :]


@no_type_check
@triton.jit
def _add_to_cell(mass, maximum, given, strongest, ROWS: tl.constexpr, LINES: tl.constexpr):
    # Sixteen rows belong to one warp, which can sum them alone.
    same = tl.zeros([ROWS // 16], tl.int32)
    given = tl.sum(tl.reshape(given, [ROWS // 16, LINES * 64 // ROWS]), 1)
    tl.atomic_add(mass + same, given, sem="relaxed")
    most = tl.max(tl.reshape(strongest, [ROWS // 16, 16]), 1)
    tl.atomic_max(maximum + same, most, sem="relaxed")
