# mistake: every merge is applied at its first occurrence only
def encode(word, merges):
    pieces = list(word)
    for left, right in merges:
        for i in range(len(pieces) - 1):
            if pieces[i] == left and pieces[i + 1] == right:
                pieces[i : i + 2] = [left + right]
                break
    return pieces
