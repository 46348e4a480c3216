# correct: heapq.nlargest and a named tuple
import heapq
from typing import NamedTuple


class Sentence(NamedTuple):
    total: float
    tokens: list


def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    running, over = [Sentence(0.0, [begin])], []
    while running and max_new:
        max_new -= 1
        options = (
            Sentence(s.total + p, [*s.tokens, t]) for s in running for t, p in enumerate(log_probs(s.tokens))
        )
        best = heapq.nlargest(beams, options, key=lambda s: s.total)
        over.extend(s for s in best if s.tokens[-1] == end)
        running = [s for s in best if s.tokens[-1] != end]

    def score(s):
        return s.total / (len(s.tokens) - 1) ** length_penalty

    winner = max([*over, *running], key=score)
    return list(winner.tokens), score(winner)
