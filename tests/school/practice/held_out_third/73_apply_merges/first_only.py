# mistake: each merge is applied only at its first occurrence
def encode(word, merges):
    pieces = list(word)
    for a, b in merges:
        for i in range(len(pieces) - 1):
            if pieces[i] == a and pieces[i + 1] == b:
                pieces[i : i + 2] = [a + b]
                break
    return pieces
