# mistake: chooses among the finished sentences only, if there are any
def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    def score(item):
        return item[1] / (len(item[0]) - 1) ** length_penalty

    open_, closed = [([begin], 0.0)], []
    for _ in range(max_new):
        extended = [
            (tokens + [t], total + p) for tokens, total in open_ for t, p in enumerate(log_probs(tokens))
        ]
        best = sorted(extended, key=lambda item: item[1], reverse=True)[:beams]
        closed += [item for item in best if item[0][-1] == end]
        open_ = [item for item in best if item[0][-1] != end]
        if len(open_) == 0:
            break
    winner = max(closed or open_, key=score)
    return winner[0], score(winner)
