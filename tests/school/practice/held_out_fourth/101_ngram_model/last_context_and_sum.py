# mistake: two at once: a context at the very end of the text counts as followed, and perplexity is exp of the sum
import math


def probability(text, context, word, vocab_size):
    n = len(context)
    seen = sum(text[i : i + n] == context for i in range(len(text) - n + 1))
    both = sum(text[i : i + n + 1] == context + [word] for i in range(len(text) - n))
    return (both + 1) / (seen + vocab_size)


def perplexity(text, tokens, n, vocab_size):
    total = 0.0
    for i in range(n - 1, len(tokens)):
        total -= math.log(probability(text, tokens[i - n + 1 : i], tokens[i], vocab_size))
    return math.exp(total)
