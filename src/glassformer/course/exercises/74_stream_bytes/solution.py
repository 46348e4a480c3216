"""Text while it is generated: a character is shown once its last byte has arrived."""


def stream(pieces: list[bytes]) -> list[str]:
    r"""[b"a\xc3", b"\xa9b"] → ["a", "éb"]"""
    shown, waiting = [], b""
    for piece in pieces:
        waiting += piece
        end = len(waiting) - count_unfinished(waiting)
        shown.append(waiting[:end].decode())
        waiting = waiting[end:]
    return shown


def count_unfinished(data: bytes) -> int:
    """How many bytes at the end belong to a character that is not complete."""
    for n in range(1, min(4, len(data)) + 1):
        byte = data[-n]
        if byte >= 0b1100_0000:  # the first byte of a character, which tells its length
            size = 2 if byte < 0b1110_0000 else 3 if byte < 0b1111_0000 else 4
            return n if n < size else 0
        if byte < 0b1000_0000:  # a character by itself
            return 0
    return 0
