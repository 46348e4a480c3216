# mistake: the length includes begin
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    alive = [([begin], 0.0)]
    done = []
    for _ in range(max_new):
        pool = []
        for tokens, total in alive:
            for token, logp in enumerate(log_probs(tokens)):
                pool.append((tokens + [token], total + logp))
        pool.sort(key=lambda pair: -pair[1])
        alive = []
        for tokens, total in pool[:beams]:
            (done if tokens[-1] == end else alive).append((tokens, total))
        if not alive:
            break
    ranked = [(total / len(tokens) ** length_penalty, tokens) for tokens, total in done + alive]
    score, tokens = max(ranked, key=lambda pair: pair[0])
    return tokens, score
