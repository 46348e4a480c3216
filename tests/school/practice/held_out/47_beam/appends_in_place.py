# mistake: appends to the sentence's own list, so all its candidates share one growing list.
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        candidates = []
        for tokens, total in live:
            for token, lp in enumerate(log_probs(tokens)):
                tokens.append(token)
                candidates.append((tokens, total + lp))
        candidates.sort(key=lambda c: c[1], reverse=True)
        kept = candidates[:beams]
        finished += [c for c in kept if c[0][-1] == end]
        live = [c for c in kept if c[0][-1] != end]
        if not live:
            break
    score = lambda c: c[1] / (len(c[0]) - 1) ** length_penalty
    best = max(finished + live, key=score)
    return best[0], score(best)
