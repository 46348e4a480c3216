# correct: heapq.nlargest with a class for a sentence
import heapq
from dataclasses import dataclass


@dataclass
class Sentence:
    tokens: list
    total: float

    def score(self, exponent):
        return self.total / (len(self.tokens) - 1) ** exponent


def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    open_, closed = [Sentence([begin], 0.0)], []
    for _ in range(max_new):
        if not open_:
            break
        grown = (
            Sentence([*s.tokens, token], s.total + p)
            for s in open_
            for token, p in enumerate(log_probs(s.tokens))
        )
        best = heapq.nlargest(beams, grown, key=lambda s: s.total)
        closed += [s for s in best if s.tokens[-1] == end]
        open_ = [s for s in best if s.tokens[-1] != end]
    winner = max(closed + open_, key=lambda s: s.score(length_penalty))
    return winner.tokens, winner.score(length_penalty)
