# mistake: the longest piece that is in the vocabulary is taken at each place, the order of merges is ignored
def encode(word, merges):
    vocab = {a + b for a, b in merges}
    out, i = [], 0
    while i < len(word):
        for j in range(len(word), i, -1):
            if word[i:j] in vocab or j == i + 1:
                out.append(word[i:j])
                i = j
                break
    return out
