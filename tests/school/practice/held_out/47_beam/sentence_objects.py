# correct: a class for sentences, finished ones marked instead of kept apart
from dataclasses import dataclass


@dataclass
class Sentence:
    tokens: list
    total: float = 0.0
    closed: bool = False

    def grow(self, token, log_p, end):
        return Sentence([*self.tokens, token], self.total + log_p, token == end)


def beam_search(log_probs, begin, end, beams, max_new, length_penalty):
    shelf = []
    open_ones = [Sentence([begin])]
    for _ in range(max_new):
        grown = []
        for sentence in open_ones:
            for token, log_p in enumerate(log_probs(sentence.tokens)):
                grown.append(sentence.grow(token, log_p, end))
        grown.sort(key=lambda sentence: sentence.total)
        best = grown[-beams:][::-1]
        shelf.extend(sentence for sentence in best if sentence.closed)
        open_ones = [sentence for sentence in best if not sentence.closed]
        if len(open_ones) == 0:
            break

    def rank(sentence):
        return sentence.total / (len(sentence.tokens) - 1) ** length_penalty

    winner = sorted(shelf + open_ones, key=rank)[-1]
    return winner.tokens, rank(winner)
