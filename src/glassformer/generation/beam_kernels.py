"""Triton kernels of a step of beam search, from logits to the rows that are read next.

    rank_kernel      the largest logits of each block of the vocabulary, and its share of a softmax
    select_kernel    the best continuations of all beams of a prompt: kept, or finished
    follow_kernel    where the keys and values of each beam lie, which do not move

The search is that of beam.py with `early`: it ends once as many texts have ended as there are
beams. As in step_kernels.py, only code that launches kernels imports this file.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

_NONE = tl.constexpr(2147483647)  # larger than any index


@no_type_check
@triton.jit
def rank_kernel(
    logits,
    excluded,
    forbidden,
    tops,
    choices,
    sums,
    V,
    stride,
    BEST: tl.constexpr,
    COPIES: tl.constexpr,
    FORBIDS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row, one block of the vocabulary: its BEST largest logits, and the sum of exponentials.

    Forbidden tokens keep their share of the probability; excluded ones have none.
    """
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    block, b = tl.program_id(0), tl.program_id(1)
    columns = block * BLOCK + tl.arange(0, BLOCK)
    inside = columns < V
    value = tl.load(logits + b.to(tl.int64) * stride + columns, mask=inside, other=float("-inf"))
    value = value.to(tl.float32)
    is_nan = inside & ~(value == value)  # noqa: PLR0124
    value += tl.load(excluded + columns, mask=inside, other=0.0)
    value = tl.where(is_nan, float("-inf"), value)
    top = tl.max(value, 0)
    shift = tl.where(top == float("-inf"), 0.0, top)
    total = tl.sum(tl.exp(value - shift), 0)
    total = tl.where(tl.max(is_nan.to(tl.int32), 0) > 0, float("nan"), total)
    place = b.to(tl.int64) * tl.num_programs(0) + block
    tl.store(sums + place * 2, shift)
    tl.store(sums + place * 2 + 1, total)
    if FORBIDS:
        row = (b // COPIES).to(tl.int64) * V
        hidden = tl.load(forbidden + row + columns, mask=inside, other=0)
        value = tl.where(hidden != 0, float("-inf"), value)
    for i in range(BEST):
        largest = tl.max(value, 0)
        first = tl.min(tl.where(value == largest, columns, _NONE), 0)
        tl.store(tops + place * BEST + i, largest)
        tl.store(choices + place * BEST + i, first)
        value = tl.where(columns == first, float("-inf"), value)


@no_type_check
@triton.jit
def select_kernel(  # noqa: PLR0915  (a kernel is one function)
    tops,
    choices,
    sums,
    stops,
    scores,
    n_ended,
    tokens,
    lengths,
    rows,
    written,
    parents,
    ended,
    ended_parents,
    live,
    n_stops,
    n_prompts,
    BEAMS: tl.constexpr,
    MOST: tl.constexpr,
    BEST: tl.constexpr,
    PARTS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    SLOTS: tl.constexpr,
    STOPS: tl.constexpr,
    SIZE: tl.constexpr,
):
    """One prompt: the MOST best candidates, of which some end and BEAMS others are kept.

    `rows` are the rows that the kept ones continue; what else happened is written into column
    `lengths + 1` of `written`, `parents`, `ended`, `ended_parents` and `live`. A prompt is live
    (1), ended (0), or has met a NaN (−1).
    """
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    p = tl.program_id(0)
    i, w, s = tl.arange(0, SIZE), tl.arange(0, SLOTS), tl.arange(0, STOPS)
    n: tl.constexpr = PARTS * BEST  # candidates of a beam
    has = i < BEAMS * n
    row = p * BEAMS + i // n
    value = tl.load(tops + p.to(tl.int64) * BEAMS * n + i, mask=has, other=float("-inf"))
    token = tl.load(choices + p.to(tl.int64) * BEAMS * n + i, mask=has, other=0)
    before = tl.load(scores + row, mask=has, other=float("-inf"))
    highest = tl.full([SIZE], float("-inf"), tl.float32)
    for part in range(PARTS):
        highest = tl.maximum(highest, tl.load(sums + (row * PARTS + part) * 2, mask=has, other=0.0))
    total = tl.zeros([SIZE], tl.float64)
    for part in range(PARTS):
        cell = sums + (row * PARTS + part) * 2
        shift = tl.load(cell, mask=has, other=0.0)
        amount = tl.load(cell + 1, mask=has, other=1.0)
        total += (tl.exp(shift - highest) * amount).to(tl.float64)
    log = value.to(tl.float64) - (highest.to(tl.float64) + tl.log(total))
    log = before + log
    is_nan = has & ~(log == log)  # noqa: PLR0124
    has_nan = tl.max(is_nan.to(tl.int32), 0) > 0
    log = tl.where(has & ~is_nan, log, float("-inf"))
    ends = tl.load(stops + s, mask=s < n_stops, other=-1)
    column = tl.load(lengths + p * BEAMS) + 1
    n_live = tl.full((), 0, tl.int32)
    n_new = tl.full((), 0, tl.int32)
    rank = tl.full((), 0, tl.int32)
    new_scores = tl.full([SLOTS], float("-inf"), tl.float64)
    end_scores = tl.full([SLOTS], float("-inf"), tl.float64)
    new_tokens = tl.zeros([SLOTS], tl.int32)
    new_beams = tl.zeros([SLOTS], tl.int32)
    end_beams = tl.zeros([SLOTS], tl.int32)
    for _ in range(MOST):
        best = tl.max(log, 0)
        at = tl.min(tl.where(log == best, i, _NONE), 0)
        chosen = tl.sum(tl.where(i == at, token, 0), 0)
        log = tl.where(i == at, float("-inf"), log)
        is_stop = tl.max((ends == chosen).to(tl.int32), 0) > 0
        is_there = best > float("-inf")
        stops_here = is_there & is_stop & (rank < BEAMS)
        goes_on = is_there & ~is_stop & (n_live < BEAMS)
        here = w == tl.where(stops_here, n_new, -1)
        end_scores = tl.where(here, best, end_scores)
        end_beams = tl.where(here, at // n, end_beams)
        n_new += stops_here.to(tl.int32)
        here = w == tl.where(goes_on, n_live, -1)
        new_scores = tl.where(here, best, new_scores)
        new_tokens = tl.where(here, chosen, new_tokens)
        new_beams = tl.where(here, at // n, new_beams)
        n_live += goes_on.to(tl.int32)
        rank += 1
    n_done = tl.load(n_ended + p) + n_new
    new_scores = tl.where(n_done >= BEAMS, float("-inf"), new_scores)
    is_live = tl.max(new_scores, 0) > float("-inf")
    is_beam = w < BEAMS
    tl.store(n_ended + p, n_done)
    tl.store(scores + p * BEAMS + w, new_scores, mask=is_beam)
    tl.store(tokens + p * BEAMS + w, new_tokens.to(tl.int64), mask=is_beam)
    tl.store(rows + p * BEAMS + w, p * BEAMS + new_beams, mask=is_beam)
    tl.store(lengths + p * BEAMS + w, column + tl.zeros([SLOTS], tl.int32), mask=is_beam)
    place = (column * n_prompts + p).to(tl.int64)
    tl.store(written + place * BEAMS + w, new_tokens, mask=is_beam)
    tl.store(parents + place * BEAMS + w, new_beams, mask=is_beam)
    tl.store(ended + place * BEAMS + w, end_scores, mask=is_beam)
    tl.store(ended_parents + place * BEAMS + w, end_beams, mask=is_beam)
    tl.store(live + place, tl.where(has_nan, -1, is_live.to(tl.int32)))


@no_type_check
@triton.jit
def follow_kernel(
    origins,
    rows,
    lengths,
    capacity,
    BEAMS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    SLOTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One prompt: `origins` of each beam become those of the row that it continues."""
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    p = tl.program_id(0)
    w, t = tl.arange(0, SLOTS), tl.arange(0, BLOCK)
    is_beam = w < BEAMS
    last = tl.load(lengths + p * BEAMS) - 1  # the slot that each row has just written itself
    row = tl.load(rows + p * BEAMS + w, mask=is_beam, other=0)
    old = origins + row.to(tl.int64)[:, None] * capacity
    new = origins + (p * BEAMS + w).to(tl.int64)[:, None] * capacity
    for start in range(0, last + 1, BLOCK):
        slots = start + t
        inside = is_beam[:, None] & (slots < last)[None, :]
        found = tl.load(old + slots[None, :], mask=inside, other=0)
        found = tl.where((slots == last)[None, :], row[:, None], found)
        tl.debug_barrier()  # all are read before any is written
        tl.store(new + slots[None, :], found, mask=is_beam[:, None] & (slots <= last)[None, :])
