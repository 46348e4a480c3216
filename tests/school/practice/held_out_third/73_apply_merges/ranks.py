# correct: always the neighbours with the lowest rank, as fast tokenizers do
def encode(word, merges):
    rank = {}
    for r, pair in enumerate(merges):
        rank.setdefault(tuple(pair), r)
    pieces = list(word)
    while len(pieces) > 1:
        best = min(zip(pieces, pieces[1:]), key=lambda p: rank.get(p, len(merges)))
        if best not in rank:
            break
        out = []
        it = iter(range(len(pieces)))
        for i in it:
            if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == best:
                out.append(pieces[i] + pieces[i + 1])
                next(it)
            else:
                out.append(pieces[i])
        pieces = out
    return pieces
