# mistake: waits with everything in the buffer while its last character is unfinished, also with characters that are complete
def stream(pieces):
    buffer = b""
    out = []
    for piece in pieces:
        buffer += piece
        try:
            out.append(buffer.decode("utf-8"))
            buffer = b""
        except UnicodeDecodeError:
            out.append("")
    return out
