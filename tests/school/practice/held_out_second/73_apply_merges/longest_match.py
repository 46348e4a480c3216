# mistake: makes a vocabulary of the merges and takes the longest piece that matches from the left, instead of applying the merges in order
def encode(word, merges):
    vocab = {a + b for a, b in merges} | set(word)
    pieces, i = [], 0
    while i < len(word):
        for end in range(len(word), i, -1):
            if word[i:end] in vocab:
                pieces.append(word[i:end])
                i = end
                break
    return pieces
