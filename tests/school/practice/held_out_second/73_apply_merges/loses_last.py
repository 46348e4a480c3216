# mistake: goes only to the last but one piece, so that a last piece which is not joined is lost
def encode(word, merges):
    pieces = list(word)
    for a, b in merges:
        new = []
        i = 0
        while i < len(pieces) - 1:
            if pieces[i] == a and pieces[i + 1] == b:
                new.append(a + b)
                i += 2
            else:
                new.append(pieces[i])
                i += 1
        pieces = new
    return pieces
