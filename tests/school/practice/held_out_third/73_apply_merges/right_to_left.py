# mistake: the word is read from right to left, which matters for overlapping pairs like aaa
def encode(word, merges):
    pieces = list(word)
    for a, b in merges:
        i = len(pieces) - 2
        while i >= 0:
            if i + 1 < len(pieces) and pieces[i] == a and pieces[i + 1] == b:
                pieces[i : i + 2] = [a + b]
                i -= 1
            i -= 1
    return pieces
