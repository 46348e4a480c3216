import math


def probability(text, context, word, vocab_size):
    """The probability of a word after a context, by counts that begin at one"""
    ...


def perplexity(text, tokens, n, vocab_size):
    """exp of the mean of −log probability, each token from the n − 1 before it"""
    ...
