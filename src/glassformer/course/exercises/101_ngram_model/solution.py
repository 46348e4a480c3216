"""A language model that counts, and how surprised it is by another text."""

import math


def probability(text: list[int], context: list[int], word: int, vocab_size: int) -> float:
    """The probability of a word after a context, by counts that begin at one"""
    n = len(context)
    followers = [text[i + n] for i in range(len(text) - n) if text[i : i + n] == context]
    return (followers.count(word) + 1) / (len(followers) + vocab_size)


def perplexity(text: list[int], tokens: list[int], n: int, vocab_size: int) -> float:
    """exp of the mean of −log probability, each token from the n − 1 before it"""
    logs = [
        math.log(probability(text, tokens[i - n + 1 : i], tokens[i], vocab_size))
        for i in range(n - 1, len(tokens))
    ]
    return math.exp(-sum(logs) / len(logs))
