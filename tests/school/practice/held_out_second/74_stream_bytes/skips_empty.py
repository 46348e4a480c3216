# mistake: appends a string only when there is something to print, so that there are fewer strings than pieces
def stream(pieces):
    buffer, out = bytearray(), []
    for piece in pieces:
        buffer.extend(piece)
        start = len(buffer) - 1
        while start > 0 and buffer[start] & 0b11000000 == 0b10000000:
            start -= 1
        first = buffer[start] if buffer else 0
        need = 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1
        cut = start if len(buffer) - start < need else len(buffer)
        text = bytes(buffer[:cut]).decode("utf-8")
        del buffer[:cut]
        if text:
            out.append(text)
    return out
