# correct: keeps the ranks in a table and always joins the neighbours with the lowest rank, as fast tokenizers do
def encode(word, merges):
    rank = {pair: number for number, pair in enumerate(map(tuple, merges))}
    pieces = list(word)
    while len(pieces) > 1:
        ranked = [
            (rank[pair], i) for i, pair in enumerate(zip(pieces, pieces[1:])) if pair in rank
        ]
        if not ranked:
            break
        _, i = min(ranked)
        pieces = pieces[:i] + [pieces[i] + pieces[i + 1]] + pieces[i + 2 :]
    return pieces
