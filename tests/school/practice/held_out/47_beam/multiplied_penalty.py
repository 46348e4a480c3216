# mistake: multiplies the total by length^penalty instead of dividing, which favours short sentences.
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        candidates = []
        for tokens, total in live:
            for token, lp in enumerate(log_probs(tokens)):
                candidates.append((tokens + [token], total + lp))
        candidates.sort(key=lambda c: c[1], reverse=True)
        live = []
        for c in candidates[:beams]:
            (finished if c[0][-1] == end else live).append(c)
        if not live:
            break

    def score(c):
        return c[1] * (len(c[0]) - 1) ** length_penalty

    best = max(finished + live, key=score)
    return best[0], score(best)
