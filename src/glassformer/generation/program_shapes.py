"""How the work of a decoding step on a GPU is cut into programs (cuda_step.py launches them)."""

from typing import NamedTuple

_KEYS_PER_PART = 128  # of a sequence: what one program of the attention kernel reads
_PARTS = 264  # programs that fill a GPU; with more, parts gain nothing


class ProductShape(NamedTuple):
    """The part of a product that one program computes."""

    columns: int
    chunk: int  # of the numbers that are summed: read at once
    warps: int


def shape_product(N: int, K: int, *, is_head: bool, is_quantized: bool = False) -> ProductShape:
    """How a product of N columns, each a sum of K numbers, is divided.

    Larger parts read faster when one product follows the other (by a tenth), and slow down a whole
    step by as much: the next kernel waits for the last of them.
    """
    chunk = min(power_above(K), 4096)
    if is_head:
        return ProductShape(head_block(N), min(chunk, 2048 if is_quantized else 1024), 4)
    return ProductShape(4 if chunk <= 2048 else 2, chunk, 4)


class AttentionShape(NamedTuple):
    """How one program of the attention kernel works."""

    rows: int  # the query heads that share keys, and what fills them up
    keys: int  # read at once
    warps: int
    dots: bool  # by the matrix units


def shape_attention(
    group: int, width: int, programs: int, capacity: int, *, is_exact: bool
) -> AttentionShape:
    """How each of so many programs attends, for `group` query heads that share keys of this width.

    The matrix units want 16 rows, and in float32 each of them costs as much as a real one. Where
    programs fill the GPU, one warp for each is the fastest: its threads need not wait for others.
    """
    rows = power_above(group)
    if is_exact and rows <= 4:
        fills = programs > _PARTS
        n_numbers, warps = (1024, rows) if fills else (4096 // rows, 4)  # of the keys read at once
        return AttentionShape(rows, max(1, n_numbers // width), warps, dots=False)
    if not is_exact and programs > 8 * _PARTS and rows <= 16 and width <= 128:
        return AttentionShape(16, 16 if capacity <= 256 else 32, 1, dots=True)
    return AttentionShape(max(16, rows), 32 if is_exact else 64, 4, dots=True)


def head_block(vocab_size: int) -> int:
    """Tokens of the vocabulary of one program."""
    return 16 if vocab_size > 4096 else 4


def count_parts(capacity: int, programs: int) -> int:
    """Into how many parts the keys of a sequence are cut: a power of 2."""
    wanted = min(count_blocks(capacity, _KEYS_PER_PART), max(1, _PARTS // programs))
    return min(64, 1 << (wanted.bit_length() - 1))


def count_blocks(n: int, size: int) -> int:
    """How many blocks of `size` hold n.

    >>> count_blocks(9, 4)
    3
    """
    return -(-n // size)


def power_above(n: int) -> int:
    """The power of 2 from n on.

    >>> power_above(5), power_above(8)
    (8, 8)
    """
    return 1 << (n - 1).bit_length()
