# mistake: the buffer is printed only if all of it decodes; complete characters before an unfinished one wait too
def stream(pieces):
    buffer, out = b"", []
    for piece in pieces:
        buffer += piece
        try:
            out.append(buffer.decode("utf-8"))
            buffer = b""
        except UnicodeDecodeError:
            out.append("")
    return out
