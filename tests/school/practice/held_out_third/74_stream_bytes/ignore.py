# mistake: unfinished bytes are ignored and lost
def stream(pieces):
    out = []
    for piece in pieces:
        out.append(piece.decode("utf-8", "ignore"))
    return out
