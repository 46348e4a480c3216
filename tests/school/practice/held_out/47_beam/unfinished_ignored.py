# mistake: two at once: unfinished sentences cannot win if any is finished, and begin is missing from the result.
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        candidates = []
        for tokens, total in live:
            for token, lp in enumerate(log_probs(tokens)):
                candidates.append((tokens + [token], total + lp))
        candidates = sorted(candidates, key=lambda c: c[1], reverse=True)[:beams]
        finished += [c for c in candidates if c[0][-1] == end]
        live = [c for c in candidates if c[0][-1] != end]
        if not live:
            break
    score = lambda c: c[1] / (len(c[0]) - 1) ** length_penalty
    best = max(finished or live, key=score)
    return best[0][1:], score(best)
