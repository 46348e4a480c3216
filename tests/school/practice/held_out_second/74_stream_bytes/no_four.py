# mistake: knows characters of two and three bytes only: one of four is taken for complete after three
def stream(pieces):
    buffer, out = b"", []
    for piece in pieces:
        buffer += piece
        cut = len(buffer)
        for back in (1, 2, 3):
            if back > len(buffer):
                break
            byte = buffer[-back]
            if byte >= 0b11000000:
                need = 2 if byte < 0b11100000 else 3
                if back < need:
                    cut = len(buffer) - back
                break
        out.append(buffer[:cut].decode("utf-8", errors="replace"))
        buffer = buffer[cut:]
    return out
