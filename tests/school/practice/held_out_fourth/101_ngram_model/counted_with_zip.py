# correct: Counter over tuples made with zip
import math
from collections import Counter


def grams(text, n):
    return Counter(zip(*(text[i:] for i in range(n))))


def probability(text, context, word, vocab_size):
    found = grams(text, len(context) + 1)
    followed = sum(count for gram, count in found.items() if list(gram[:-1]) == list(context))
    return (found[(*context, word)] + 1) / (followed + vocab_size)


def perplexity(text, tokens, n, vocab_size):
    logs = [
        math.log(probability(text, list(gram[:-1]), gram[-1], vocab_size))
        for gram in zip(*(tokens[i:] for i in range(n)))
    ]
    return math.exp(-sum(logs) / len(logs))
