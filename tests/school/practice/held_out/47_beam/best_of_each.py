# mistake: keeps the best continuations of every sentence separately, one each, instead of the best of all.
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for step in range(max_new):
        candidates = []
        for tokens, total in live:
            log_p = log_probs(tokens)
            order = sorted(range(len(log_p)), key=lambda t: -log_p[t])
            for token in order[: beams if step == 0 else 1]:
                candidates.append((tokens + [token], total + log_p[token]))
        finished += [c for c in candidates if c[0][-1] == end]
        live = [c for c in candidates if c[0][-1] != end]
        if not live:
            break
    score = lambda c: c[1] / (len(c[0]) - 1) ** length_penalty
    best = max(finished + live, key=score)
    return best[0], score(best)
