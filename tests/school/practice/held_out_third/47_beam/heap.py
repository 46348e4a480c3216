# correct: heapq.nlargest and tuples instead of sorted lists
import heapq


def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live = [(0.0, (begin,))]
    done = []
    n = 0
    while live and n < max_new:
        grown = (
            (total + lp, tokens + (token,))
            for total, tokens in live
            for token, lp in enumerate(log_probs(list(tokens)))
        )
        kept = heapq.nlargest(beams, grown, key=lambda c: c[0])
        done.extend(c for c in kept if c[1][-1] == end)
        live = [c for c in kept if c[1][-1] != end]
        n += 1
    best_score, best = None, None
    for total, tokens in done + live:
        score = total / max(len(tokens) - 1, 1) ** length_penalty
        if best_score is None or score > best_score:
            best_score, best = score, tokens
    return list(best), best_score
