# mistake: log2 with exp: the bases do not match
import math


def probability(text, context, word, vocab_size):
    n = len(context)
    follow = [text[i + n] for i in range(len(text) - n) if text[i : i + n] == context]
    return (follow.count(word) + 1) / (len(follow) + vocab_size)


def perplexity(text, tokens, n, vocab_size):
    bits = [-math.log2(probability(text, tokens[i - n + 1 : i], tokens[i], vocab_size)) for i in range(n - 1, len(tokens))]
    return math.exp(sum(bits) / len(bits))
