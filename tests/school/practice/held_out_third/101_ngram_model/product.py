# correct: the counts in a table of windows; perplexity as a geometric mean with base 2
import math
from collections import Counter


def _windows(items, n):
    return zip(*(items[i:] for i in range(n)))


def probability(text, context, word, vocab_size):
    grams = Counter(_windows(list(text), len(context) + 1))
    context = tuple(context)
    followed = sum(count for gram, count in grams.items() if gram[:-1] == context)
    return (grams[(*context, word)] + 1) / (followed + vocab_size)


def perplexity(text, tokens, n, vocab_size):
    bits = [-math.log2(probability(text, list(g[:-1]), g[-1], vocab_size)) for g in _windows(tokens, n)]
    return 2.0 ** (math.fsum(bits) / len(bits))
