# mistake: counts begin in the length.
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        candidates = [
            (tokens + [token], total + lp)
            for tokens, total in live
            for token, lp in enumerate(log_probs(tokens))
        ]
        candidates.sort(key=lambda c: c[1], reverse=True)
        kept = candidates[:beams]
        finished += [c for c in kept if c[0][-1] == end]
        live = [c for c in kept if c[0][-1] != end]
        if not live:
            break
    scored = [(tokens, total / len(tokens) ** length_penalty) for tokens, total in finished + live]
    return max(scored, key=lambda c: c[1])
