# mistake: finished sentences stay in the beam and are extended past end.
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    beam = [([begin], 0.0)]
    for _ in range(max_new):
        candidates = []
        for tokens, total in beam:
            for token, lp in enumerate(log_probs(tokens)):
                candidates.append((tokens + [token], total + lp))
        beam = sorted(candidates, key=lambda c: -c[1])[:beams]
    best = max(beam, key=lambda c: c[1] / (len(c[0]) - 1) ** length_penalty)
    return best[0], best[1] / (len(best[0]) - 1) ** length_penalty
