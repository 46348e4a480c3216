# correct: heapq.nlargest picks the candidates, sentences as tuples until the end
import heapq
from operator import itemgetter


def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    live = {(begin,): 0.0}
    pool = {}
    rounds = 0
    while live and rounds < max_new:
        rounds += 1
        grown = {
            (*sentence, token): total + lp
            for sentence, total in live.items()
            for token, lp in enumerate(log_probs(list(sentence)))
        }
        best = heapq.nlargest(beams, grown.items(), key=itemgetter(1))
        pool.update((s, t) for s, t in best if s[-1] == end)
        live = {s: t for s, t in best if s[-1] != end}
    pool.update(live)
    ranked = {s: t / (len(s) - 1) ** length_penalty for s, t in pool.items()}
    winner = max(ranked, key=ranked.get)
    return list(winner), ranked[winner]
