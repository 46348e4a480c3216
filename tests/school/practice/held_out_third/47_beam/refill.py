# mistake: finished sentences do not use up a place of the beam: the best `beams` unfinished ones are kept besides
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        candidates = []
        for tokens, total in live:
            lp = log_probs(tokens)
            candidates += [(tokens + [t], total + lp[t]) for t in range(len(lp))]
        candidates.sort(key=lambda c: -c[1])
        finished += [c for c in candidates if c[0][-1] == end]
        live = [c for c in candidates if c[0][-1] != end][:beams]
        if not live:
            break
    score = lambda c: c[1] / (len(c[0]) - 1) ** length_penalty
    best = max(finished + live, key=score)
    return best[0], score(best)
