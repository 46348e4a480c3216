"""Encoding by byte-pair encoding: replay the merges in the order in which they were learned."""


def encode(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """ "that", [("a", "t"), ("t", "h")] → ["th", "at"]"""
    pieces = list(word)
    for pair in merges:
        joined, i = [], 0
        while i < len(pieces):
            step = 2 if tuple(pieces[i : i + 2]) == pair else 1
            joined.append("".join(pieces[i : i + step]))
            i += step
        pieces = joined
    return pieces
