# mistake: applies each merge only at its first occurrence in the word
def encode(word, merges):
    pieces = list(word)
    for pair in merges:
        for i in range(len(pieces) - 1):
            if (pieces[i], pieces[i + 1]) == tuple(pair):
                pieces = pieces[:i] + ["".join(pair)] + pieces[i + 2 :]
                break
    return pieces
