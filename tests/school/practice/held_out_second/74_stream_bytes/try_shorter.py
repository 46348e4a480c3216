# correct: tries to decode with 0, 1, 2 or 3 bytes held back and takes the first that works
def stream(pieces):
    waiting = b""
    printed = []
    for piece in pieces:
        waiting += piece
        for held in range(4):
            cut = len(waiting) - held
            if cut < 0:
                continue
            try:
                text = waiting[:cut].decode("utf-8")
            except UnicodeDecodeError:
                continue
            printed.append(text)
            waiting = waiting[cut:]
            break
    return printed
