# mistake: the length counts begin
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        candidates = []
        for tokens, total in live:
            for token, lp in enumerate(log_probs(tokens)):
                candidates.append((tokens + [token], total + lp))
        candidates.sort(key=lambda c: c[1], reverse=True)
        candidates = candidates[:beams]
        finished += [c for c in candidates if c[0][-1] == end]
        live = [c for c in candidates if c[0][-1] != end]
        if not live:
            break
    best = max(finished + live, key=lambda c: c[1] / len(c[0]) ** length_penalty)
    return best[0], best[1] / len(best[0]) ** length_penalty
