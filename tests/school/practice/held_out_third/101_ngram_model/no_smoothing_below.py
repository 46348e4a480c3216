# mistake: the denominator has no vocab_size added
import math


def probability(text, context, word, vocab_size):
    n = len(context)
    after = [text[i + n] for i in range(len(text) - n) if text[i : i + n] == context]
    return (after.count(word) + 1) / (len(after) + 1)


def perplexity(text, tokens, n, vocab_size):
    logs = [
        -math.log(probability(text, tokens[i - n + 1 : i], tokens[i], vocab_size))
        for i in range(n - 1, len(tokens))
    ]
    return math.exp(sum(logs) / len(logs))
