"""What the Triton kernels share: scores and masks of a tile, and where a sequence's rows are."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from typing import no_type_check

import triton
import triton.language as tl

LN2 = tl.constexpr(0.6931471805599453)
NOBODY = tl.constexpr(-0x7FFFFFFFFFFFFFFF)  # below every scored key

# Numbers that differ from call to call: no recompilation because one is 1 or even.
FREE = ("limits_batch", "H", "group", "n_sequences", "steps", "table_row", "L", "S", "n_parts")


@no_type_check
@triton.jit
def find_sequence(block, starts, n_sequences, steps, SIZE: tl.constexpr):
    """The sequence of a block of a packed batch, and which of the sequence's blocks it is.

    Sequence i has the blocks from starts[i] // SIZE + i on. These are as many as it needs, or one
    more, which is empty; nothing must be counted before the launch.
    """
    low, high = block * 0, block * 0 + n_sequences
    for _ in range(steps):
        middle = (low + high) // 2
        is_before = tl.load(starts + middle) // SIZE + middle <= block
        low = tl.where(is_before, middle, low)
        high = tl.where(is_before, high, middle)
    return low, block - tl.load(starts + low) // SIZE - low


@no_type_check
@triton.jit
def find_in_cache(keys, inside, table, k_block, k_row, PAGE: tl.constexpr):
    """Where keys are in a paged cache: in the blocks of PAGE keys that a row of the table lists."""
    block = tl.load(table + keys // PAGE, mask=inside, other=0)
    return block.to(tl.int64) * k_block + (keys % PAGE).to(tl.int64) * k_row


@no_type_check
@triton.jit
def cap_scores(products, scale, cap, SOFTCAP: tl.constexpr):
    # scale holds the 1/log 2; with a cap it holds 1/cap, and cap the 1/log 2.
    return cap * _tanh(products * scale) if SOFTCAP else products * scale


@no_type_check
@triton.jit
def _tanh(x):
    # Triton's tanh is in a library that its interpreter lacks. Near 0 the quotient would cancel, so
    # the odd Taylor series is used there; its next term is below 1e-9 of the first.
    y = x * x
    near = x * (1 + y * (-1 / 3 + y * (2 / 15 + y * (-17 / 315 + y * (62 / 2835)))))
    far = 1 - 2 / (tl.exp2(tl.minimum(tl.abs(x), 30.0) * (2 / LN2)) + 1)
    return tl.where(tl.abs(x) < 0.15, near, tl.where(x < 0, -far, far))


@no_type_check
@triton.jit
def may_see(rows, keys, low, high, first_key, stop_key, first_row, stop_row):
    # Reduce all limits to a first and a last key per row: two comparisons per cell.
    first = tl.maximum(rows + low, first_key)
    last = tl.minimum(rows + high, stop_key - 1)
    last = tl.where((rows >= first_row) & (rows < stop_row), last, -1)
    return (keys[None, :] >= first[:, None]) & (keys[None, :] <= last[:, None])


@no_type_check
@triton.jit
def rank_keys(scores, keys):
    """Scores and keys as one whole number each: a higher score is a larger number."""
    bits = scores.to(tl.int32, bitcast=True)
    bits = tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC00000, bits)  # NaN is first
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # negative floats are ordered the other way round
    return (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - keys)[None, :].to(tl.int64)


@no_type_check
@triton.jit
def keep_best(best, found):
    """The largest numbers of each row of both; the loop ends when no row has a better one."""
    candidate, worst = tl.max(found, 1), tl.min(best, 1)
    better = candidate > worst
    while tl.max(better.to(tl.int32), 0) > 0:
        replaced = (best == worst[:, None]) & better[:, None]
        best = tl.where(replaced, candidate[:, None], best)
        found = tl.where(found == candidate[:, None], NOBODY, found)
        candidate, worst = tl.max(found, 1), tl.min(best, 1)
        better = candidate > worst
    return best
