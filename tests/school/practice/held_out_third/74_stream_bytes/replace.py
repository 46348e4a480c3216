# mistake: each piece is decoded by itself with errors="replace"
def stream(pieces):
    return [p.decode("utf-8", errors="replace") for p in pieces]
