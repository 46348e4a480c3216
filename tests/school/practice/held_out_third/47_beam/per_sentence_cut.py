# mistake: each sentence keeps only its own best token, so the beams never compete
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    lp = log_probs([begin])
    order = sorted(range(len(lp)), key=lambda t: -lp[t])[:beams]
    pool = [([begin, t], lp[t]) for t in order]
    finished = [c for c in pool if c[0][-1] == end]
    live = [c for c in pool if c[0][-1] != end]
    for _ in range(max_new - 1):
        new = []
        for tokens, total in live:
            lp = log_probs(tokens)
            t = max(range(len(lp)), key=lambda i: lp[i])
            new.append((tokens + [t], total + lp[t]))
        finished += [c for c in new if c[0][-1] == end]
        live = [c for c in new if c[0][-1] != end]
        if not live:
            break
    score = lambda c: c[1] / (len(c[0]) - 1) ** length_penalty
    best = max(finished + live, key=score)
    return best[0], score(best)
