"""Triton kernels of speculative decoding: rows are tokens of one text that follow each other.

    keep_kernel     norm of heads ─ rotate ─ keep k, v of all rows, before any of them attends
    accept_kernel   the choice after each row ─ the guesses that hold ─ the text ─ the next guesses

(See step_kernels.py; only cuda_step.py and draft_state.py import this, and only when needed.)
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from glassformer.generation.step_kernels import read_head

_PLACES = tl.constexpr(1 << 28)  # more than a text has tokens


@no_type_check
@triton.jit
def keep_kernel(
    heads,
    memory,
    cos,
    sin,
    k_weight,
    lengths,
    missing,
    eps,
    memory_slot,
    H,
    D: tl.constexpr,
    KV: tl.constexpr,
    ROTATES: tl.constexpr,
    LAYOUT: tl.constexpr,
    NORMS: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One head of one row: its key and value go into the memory, as attend_kernel writes them."""
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    dtype = memory.dtype.element_ty
    kv = tl.program_id(0) % KV
    b = tl.program_id(0) // KV
    d, one = tl.arange(0, WIDTH), tl.arange(0, 1)
    if LAYOUT == "half":  # noqa: SIM108  (the compiler knows only this form)
        twin = tl.where(d < D // 2, d + D // 2, d - D // 2)
    else:
        twin = d ^ 1
    length = tl.load(lengths + b, cache_modifier=".cg")
    hidden = tl.load(missing + b, cache_modifier=".cg")
    base = heads + b.to(tl.int64) * (H + 2 * KV) * D
    has = (one == 0)[:, None] & (d < D)[None, :]
    at = (H + kv + one)[:, None] * D
    k, k_twin = read_head(
        base, k_weight, at + d[None, :], at + twin[None, :], (d, twin), has, eps, D, NORMS
    )
    if ROTATES:
        place = (length - hidden).to(tl.int64) * D + d
        c = tl.load(cos + place, mask=d < D, other=0.0)[None, :]
        s = tl.load(sin + place, mask=d < D, other=0.0)[None, :]
        k = k * c + k_twin * s
    v = tl.load(base + (H + KV + kv + one)[:, None] * D + d[None, :], mask=has, other=0.0)
    slot = memory + kv * D + length.to(tl.int64) * memory_slot
    tl.store(slot + one[:, None] + d[None, :], k.to(dtype), mask=has)
    tl.store(slot + KV * D + one[:, None] + d[None, :], v, mask=has)


@no_type_check
@triton.jit
def accept_kernel(
    best,
    best_index,
    tokens,
    lengths,
    next_token,
    next_length,
    text,
    most,
    log,
    n_logged,
    n_rows,
    n_parts,
    LOOKS_UP: tl.constexpr,
    OVERLAPS: tl.constexpr,
    WIDE: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The tokens that the model chose after each of n_rows rows, up to a guess that differs.

    They are appended to the text, which is at most `most` long, and to the log: how many they are,
    how many of the guesses held (with one row, whether the first one would have), and the tokens.
    With LOOKS_UP, the next guesses are those that followed the last tokens before: the longest
    match of 4 to 2 tokens, the latest of equals.
    """
    if OVERLAPS:
        gdc_launch_dependents()
        gdc_wait()
    rows, part = tl.arange(0, WIDE), tl.arange(0, PARTS)
    cells = rows[:, None] * n_parts + part[None, :]
    there = (rows < n_rows)[:, None] & (part < n_parts)[None, :]
    value = tl.load(best + cells, mask=there, other=float("-inf"))
    index = tl.load(best_index + cells, mask=there, other=2147483647)
    top = tl.max(value, 1)
    chosen = tl.min(tl.where(value == top[:, None], index, 2147483647), 1)
    chosen = tl.where(top == float("-inf"), -2, chosen)
    guess = tl.load(tokens + rows + 1, mask=rows + 1 < WIDE, other=-3).to(tl.int32)
    is_right = (chosen == guess) & (rows < n_rows)
    held = tl.min(tl.where(is_right, WIDE, rows), 0)
    length = tl.load(next_length)  # tokens in memory: all of the text but the last
    room = tl.load(most) - length - 1
    count = tl.minimum(tl.minimum(held + 1, n_rows), room)
    is_new = rows < count
    tl.store(text + length + 1 + rows, tl.maximum(chosen, 0), mask=is_new)
    entry = tl.load(n_logged)
    line = log + entry * (WIDE + 2)
    tl.store(line, count)
    tl.store(line + 1, held)
    tl.store(line + 2 + rows, chosen, mask=is_new)
    tl.store(n_logged, entry + 1)
    last = tl.sum(tl.where(rows == count - 1, tl.maximum(chosen, 0), 0), 0)
    last = tl.where(count > 0, last, tl.load(next_token).to(tl.int32))
    length += count
    tl.debug_barrier()  # the text is written before it is read, and old guesses are read
    if LOOKS_UP:
        found = tl.full([BLOCK], -1, tl.int32)
        for start in range(0, length, BLOCK):
            at = start + tl.arange(0, BLOCK)
            match = tl.zeros([BLOCK], tl.int32)
            goes_on = at < length
            for back in tl.static_range(4):
                goes_on = goes_on & (at >= back)
                own = tl.load(text + tl.maximum(length - back, 0))
                goes_on = goes_on & (tl.load(text + at - back, mask=goes_on, other=-1) == own)
                match += goes_on.to(tl.int32)
            found = tl.maximum(found, tl.where(match > 1, match * _PLACES + at, -1))
        first = tl.max(found, 0)
        place = tl.maximum(first, 0) % _PLACES
        period = tl.maximum(length - place, 1)
        is_guess = rows + 1 < WIDE
        guesses = tl.load(text + place + 1 + rows % period, mask=is_guess, other=0)
        tl.store(tokens + 1 + rows, tl.where(first >= 0, guesses, 0), mask=is_guess)
    tl.store(tokens, last)
    tl.store(next_token, last)
    tl.store(lengths + rows, length + rows)
    tl.store(next_length, length)
