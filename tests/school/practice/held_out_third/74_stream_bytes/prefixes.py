# correct: the difference of the texts of two prefixes, decoded with errors ignored
def stream(pieces):
    data, before, out = b"", "", []
    for piece in pieces:
        data += piece
        now = data.decode("utf-8", errors="ignore")
        out.append(now[len(before) :])
        before = now
    return out
