# mistake: off by one: the context of a token has n tokens instead of n - 1
import math


def probability(text, context, word, vocab_size):
    n = len(context)
    after = [text[i + n] for i in range(len(text) - n) if text[i : i + n] == context]
    return (after.count(word) + 1) / (len(after) + vocab_size)


def perplexity(text, tokens, n, vocab_size):
    logs = [math.log(probability(text, tokens[i - n : i], tokens[i], vocab_size)) for i in range(n, len(tokens))]
    return math.exp(-sum(logs) / len(logs))
