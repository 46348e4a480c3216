# mistake: decodes each piece by itself with errors="ignore", so that divided characters are lost
def stream(pieces):
    return [piece.decode("utf-8", errors="ignore") for piece in pieces]
