# mistake: the sum is divided by the number of all tokens, also those not predicted
import math


def probability(text, context, word, vocab_size):
    n = len(context)
    hits = [text[i + n] for i in range(len(text) - n) if text[i : i + n] == context]
    return (hits.count(word) + 1) / (len(hits) + vocab_size)


def perplexity(text, tokens, n, vocab_size):
    s = 0
    for i in range(n - 1, len(tokens)):
        s += math.log(probability(text, tokens[i - n + 1 : i], tokens[i], vocab_size))
    return math.exp(-s / len(tokens))
