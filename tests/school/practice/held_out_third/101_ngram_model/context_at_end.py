# mistake: the denominator counts every place of the context, also at the very end where nothing follows
import math


def probability(text, context, word, vocab_size):
    n = len(context)
    places = sum(text[i : i + n] == context for i in range(len(text) - n + 1))
    both = sum(text[i : i + n + 1] == context + [word] for i in range(len(text) - n))
    return (both + 1) / (places + vocab_size)


def perplexity(text, tokens, n, vocab_size):
    total, count = 0.0, 0
    for i in range(n - 1, len(tokens)):
        total -= math.log(probability(text, tokens[i - n + 1 : i], tokens[i], vocab_size))
        count += 1
    return math.exp(total / count)
