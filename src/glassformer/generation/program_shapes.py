"""How the work of a decoding step on a GPU is cut into programs (cuda_step.py launches them)."""

from typing import NamedTuple

_KEYS_PER_PART = 128  # of a sequence: what one program of the attention kernel reads
_PARTS = 264  # programs that fill a GPU; with more, parts gain nothing
LARGE = 1 << 22  # numbers of a matrix from which memory is the bound; those of GPT-2 124M have less
_NUMBERS = 1 << 14  # that a program of a large product loads at once


class ProductShape(NamedTuple):
    """The part of a product that one program computes."""

    columns: int
    chunk: int  # of the numbers that are summed: read at once
    warps: int


def shape_product(N: int, K: int, *, is_head: bool) -> ProductShape:
    """How a product of N columns, each a sum of K numbers, is divided.

    A large one is bound by memory: its programs have more warps, which load whole rows at once. In
    a small one that slows down the whole step: the next kernel waits for the last program.
    """
    whole = power_above(K)
    is_large = K > 1024 and N * K >= LARGE
    if is_head:
        chunk, warps = (2048, 8) if is_large else (1024, 4)
        return ProductShape(head_block(N), min(whole, chunk), warps)
    if is_large:
        chunk = min(whole, 8192)
        columns = max(2, _NUMBERS // chunk)
        return ProductShape(columns if columns * _PARTS <= N else columns // 2, chunk, 8)
    chunk = min(whole, 4096)
    return ProductShape(4 if chunk <= 2048 else 2, chunk, 4)


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
