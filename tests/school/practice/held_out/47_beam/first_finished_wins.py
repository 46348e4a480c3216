# mistake: returns the first finished sentence instead of searching on.
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live = [([begin], 0.0)]
    for _ in range(max_new):
        candidates = []
        for tokens, total in live:
            for token, lp in enumerate(log_probs(tokens)):
                candidates.append((tokens + [token], total + lp))
        live = sorted(candidates, key=lambda c: c[1], reverse=True)[:beams]
        for tokens, total in live:
            if tokens[-1] == end:
                return tokens, total / (len(tokens) - 1) ** length_penalty
    tokens, total = live[0]
    return tokens, total / (len(tokens) - 1) ** length_penalty
