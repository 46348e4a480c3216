# mistake: keeps the best `beams` successors of each sentence instead of the best of all candidates together
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live, finished = [([begin], 0.0)], []
    for _ in range(max_new):
        new = []
        for tokens, total in live:
            log_p = log_probs(tokens)
            best = sorted(range(len(log_p)), key=lambda t: -log_p[t])[:beams]
            for token in best:
                c = (tokens + [token], total + log_p[token])
                (finished if token == end else new).append(c)
        live = new
        if not live:
            break

    def score(c):
        return c[1] / (len(c[0]) - 1) ** length_penalty

    best = max(finished + live, key=score)
    return best[0], score(best)
