# mistake: counts begin in the length by which the total is divided
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        candidates = []
        for tokens, total in live:
            for token, p in enumerate(log_probs(tokens)):
                candidates.append((tokens + [token], total + p))
        candidates.sort(key=lambda c: c[1], reverse=True)
        live = []
        for c in candidates[:beams]:
            (finished if c[0][-1] == end else live).append(c)
        if not live:
            break
    scored = [(tokens, total / len(tokens) ** length_penalty) for tokens, total in finished + live]
    return max(scored, key=lambda s: s[1])
