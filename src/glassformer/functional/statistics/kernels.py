"""The Triton kernels behind statistics on CUDA: one for `lse`, one for everything that follows.

    keys →   k0      k1
              ┌───────┐  A program of the second kernel holds one block of keys and visits the
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

_LN2 = tl.constexpr(0.6931471805599453)
_NAN_BITS = tl.constexpr(0x7FC00000)
_NOTHING = tl.constexpr(-1e30)  # the logarithm of weight 0: its exp2 is 0, and 0 times it too

# Numbers that differ from call to call: no recompilation because one is 1 or even.
_FREE = ("limits_batch", "H", "group", "L", "S", "n_parts")


@no_type_check
@triton.jit(do_not_specialize=(*_FREE, "n_blocks"))
def lse_kernel(  # noqa: PLR0915  (a kernel is one function)
    q,
    k,
    lse,
    limits,
    slopes,
    q_batch,
    q_head,
    q_row,
    k_batch,
    k_head,
    k_row,
    limits_batch,
    H,
    group,
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
):
    """The log-sum-exp of each row over one part of the keys: (part, B, H, L), by online softmax."""
    program = tl.program_id(0)
    part = program % n_parts
    # Heads take turns, and with a causal mask the longest blocks come first: nothing long is last.
    n_heads = tl.num_programs(0) // n_parts // n_blocks
    head = (program // n_parts) % n_heads
    block = n_blocks - 1 - program // n_parts // n_heads
    batch, h = head // H, head % H

    limits += batch * limits_batch
    low, high = tl.load(limits), tl.load(limits + 1)
    first_key, stop_key = tl.load(limits + 2), tl.load(limits + 3)
    first_row, stop_row = tl.load(limits + 4), tl.load(limits + 5)

    start = block * ROWS
    rows = start + tl.arange(0, ROWS)
    columns = tl.arange(0, KEYS)
    d = tl.arange(0, WIDTH)
    q += batch.to(tl.int64) * q_batch + h.to(tl.int64) * q_head
    k += batch.to(tl.int64) * k_batch + (h // group).to(tl.int64) * k_head
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
    for careful in tl.static_range(2):
        n = (full - first + stop - after) if careful else after - full
        for i in range(n * part // n_parts, n * (part + 1) // n_parts):
            tile = full + i
            if careful:
                tile = tl.where(i < full - first, first + i, after + i - (full - first))
            keys = tile * KEYS + columns
            source = k + (tile * KEYS).to(tl.int64) * k_row
            inside = (d < D)[None, :] & ((keys < S)[:, None] if careful else True)
            k_tile = tl.load(source + columns[:, None] * k_row + d[None, :], mask=inside, other=0.0)
            products = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)
            if careful or ALIBI or SOFTCAP:
                scores = _cap_scores(products, scale, cap, SOFTCAP)
                if ALIBI:
                    away = tl.abs(rows[:, None] + (S - L) - keys[None, :])
                    scores -= slope * away.to(tl.float32)
                if careful:
                    seen = _may_see(rows, keys, low, high, first_key, stop_key, first_row, stop_row)
                    scores = tl.where(seen, scores, float("-inf"))
                higher = tl.maximum(most, tl.max(scores, 1))
            else:
                scores = products * scale  # one instruction with what is subtracted below
                higher = tl.maximum(most, tl.max(products, 1) * scale)
            finite = tl.where(higher == float("-inf"), 0.0, higher)
            weights = tl.exp2(scores - finite[:, None])
            total = total * tl.exp2(most - finite) + tl.sum(weights, 1)
            most = higher
    empty = total == 0
    found = (most + tl.log2(tl.where(empty, 1.0, total))) * _LN2
    target = (part * n_heads + head).to(tl.int64) * L
    tl.store(lse + target + rows, tl.where(empty, float("-inf"), found), mask=rows < L)


@no_type_check
@triton.jit(do_not_specialize=(*_FREE, "M", "N", "blocks_per_cell"))
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
    slopes,
    q_batch,
    q_head,
    q_row,
    k_batch,
    k_head,
    k_row,
    limits_batch,
    H,
    group,
    L,
    S,
    M,
    N,
    blocks_per_cell,
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
):
    """All other statistics of one block of keys and one part of the queries, given `lse`.

    Adds to (2, B, H, L) entropy and distance, (B, H, S) received and (B, H, M, N) mass, and raises
    (B, H, L) peak and (B, H, M, N) maximum, which are floats seen as integers.
    CELLS: how many rows of the map a tile overlaps: "none" (no map), "one", at most "two", "many".
    DISTANCE: whether to compute it, which takes a tenth of the time.
    RAGGED: the last block of a column of the map is shorter.
    """
    program = tl.program_id(0)
    part = program % n_parts
    # Heads take turns, and with a causal mask the longest blocks come first: nothing long is last.
    n_heads = tl.num_programs(0) // n_parts // (N * blocks_per_cell)
    head = (program // n_parts) % n_heads
    block = program // n_parts // n_heads
    batch, h = head // H, head % H

    column = block // blocks_per_cell
    k0 = (column.to(tl.int64) * S // N).to(tl.int32) + (block % blocks_per_cell) * KEYS
    k1 = tl.minimum(k0 + KEYS, ((column + 1).to(tl.int64) * S // N).to(tl.int32))

    limits += batch * limits_batch
    low, high = tl.load(limits), tl.load(limits + 1)
    first_key, stop_key = tl.load(limits + 2), tl.load(limits + 3)
    first_row, stop_row = tl.load(limits + 4), tl.load(limits + 5)

    local = tl.arange(0, KEYS)
    keys = k0 + local
    r = tl.arange(0, ROWS)
    d = tl.arange(0, WIDTH)
    q += batch.to(tl.int64) * q_batch + h.to(tl.int64) * q_head
    k += batch.to(tl.int64) * k_batch + (h // group).to(tl.int64) * k_head
    k_tile = tl.load(
        k + keys.to(tl.int64)[:, None] * k_row + d[None, :],
        mask=(keys < k1)[:, None] & (d < D)[None, :],
        other=0.0,
    )
    slope = tl.load(slopes + h) if ALIBI else 0.0
    head = head.to(tl.int64)
    cells = head * M * N + column
    height = L // M
    shift = S - L  # query i has the position of key i + shift

    # Tiles of queries: first … full … ahead … behind … after … stop. All cells are allowed in
    # full … after; queries precede all keys up to `ahead`, and follow them from `behind` on.
    whole = (k0 >= first_key) & (k1 <= stop_key)
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
        pooled = tl.zeros([ROWS, 4], tl.float32)
        highest = tl.zeros([ROWS], tl.int32)
        a = ((begin * ROWS + 1) * M - 1) // L  # the row of the map in which the first tile starts
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
            known = tl.load(lse + head * L + rows, mask=real, other=0.0)
            known = tl.where(known == float("-inf"), 0.0, known / _LN2)
            past = (rows + shift - k0).to(tl.float32)  # from the block's first key to the query

            products = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)
            scores = _cap_scores(products, scale, cap, SOFTCAP)
            if CAREFUL:
                away = tl.abs(past[:, None] - local.to(tl.float32)[None, :])
                if ALIBI:
                    scores -= slope * away
                seen = _may_see(rows, keys, low, high, first_key, stop_key, first_row, stop_row)
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
            surprise = tl.sum(weights * log_weights, 1) * -_LN2
            gained += _fold_rows(weights, ROWS, KEYS)
            if DISTANCE:
                given, offset = _moments(weights, ROWS, KEYS)
                if CAREFUL:
                    far = tl.sum(weights * away, 1)
                else:
                    far = tl.sum(side * (past[:, None] * given - offset), 1)
            elif CELLS != "none":
                given = tl.sum(tl.sum(tl.reshape(weights, [ROWS, KEYS // 8, 4, 2]), 1), 2)
            # Nonnegative floats have the same order as their bits.
            strongest = tl.max(weights.to(tl.int32, bitcast=True), 1)
            strongest = tl.where(tl.abs(surprise) < float("inf"), strongest, _NAN_BITS)

            places = per_row + head * L + rows
            if DISTANCE:
                pairs = places[:, None] + n_heads.to(tl.int64) * L * tl.arange(0, 2)[None, :]
                both = tl.join(surprise, far)  # one pass through shared memory instead of two
                tl.atomic_add(pairs, both, mask=real[:, None], sem="relaxed")
            else:
                tl.atomic_add(places, surprise, mask=real, sem="relaxed")
            tl.atomic_max(peak + head * L + rows, strongest, mask=real, sem="relaxed")
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
                    _add_to_cell(mass + cell, maximum + cell, pooled, highest, ROWS)
                    cell += N
                    if CELLS == "two":
                        pooled = tl.where(inside[:, None], 0.0, given)
                        highest = tl.where(inside, 0, strongest)
                        a += 1
                        edge = (a + 1) * L // M
                    else:
                        pooled = tl.zeros([ROWS, 4], tl.float32)
                        highest = tl.zeros([ROWS], tl.int32)
                        edge += height
        between = CELLS == "one" or CELLS == "two"  # noqa: PLR1714  (Triton reads no `in`)
        if between and (begin < end) & (edge <= L):
            _add_to_cell(mass + cell, maximum + cell, pooled, highest, ROWS)
    total = tl.sum(tl.reshape(gained, [32, KEYS]), 0)
    tl.atomic_add(received + head * S + keys, total, mask=keys < k1, sem="relaxed")


@no_type_check
@triton.jit
def _cap_scores(products, scale, cap, SOFTCAP: tl.constexpr):
    # scale holds the 1/log 2; with a cap it holds 1/cap, and cap the 1/log 2.
    return cap * _tanh(products * scale) if SOFTCAP else products * scale


@no_type_check
@triton.jit
def _tanh(x):
    # Triton's tanh is in a library that its interpreter lacks. Near 0 the quotient would cancel, so
    # the odd Taylor series is used there; its next term is below 1e-9 of the first.
    y = x * x
    near = x * (1 + y * (-1 / 3 + y * (2 / 15 + y * (-17 / 315 + y * (62 / 2835)))))
    far = 1 - 2 / (tl.exp2(tl.minimum(tl.abs(x), 30.0) * (2 / _LN2)) + 1)
    return tl.where(tl.abs(x) < 0.15, near, tl.where(x < 0, -far, far))


@no_type_check
@triton.jit
def _may_see(rows, keys, low, high, first_key, stop_key, first_row, stop_row):
    # Reduce all limits to a first and a last key per row: two comparisons per cell.
    first = tl.maximum(rows + low, first_key)
    last = tl.minimum(rows + high, stop_key - 1)
    last = tl.where((rows >= first_row) & (rows < stop_row), last, -1)
    return (keys[None, :] >= first[:, None]) & (keys[None, :] <= last[:, None])


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
def _add_to_cell(mass, maximum, given, strongest, ROWS: tl.constexpr):
    # Sixteen rows belong to one warp, which can sum them alone.
    same = tl.zeros([ROWS // 16], tl.int32)
    tl.atomic_add(mass + same, tl.sum(tl.reshape(given, [ROWS // 16, 64]), 1), sem="relaxed")
    most = tl.max(tl.reshape(strongest, [ROWS // 16, 16]), 1)
    tl.atomic_max(maximum + same, most, sem="relaxed")
