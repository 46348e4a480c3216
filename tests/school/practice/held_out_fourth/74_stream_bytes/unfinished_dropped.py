# mistake: bytes of unfinished characters are ignored instead of kept
def stream(pieces):
    return [piece.decode("utf-8", errors="ignore") for piece in pieces]
