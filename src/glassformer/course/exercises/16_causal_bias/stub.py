import math

import torch


def causal_bias(length):
    """0 on and below the diagonal, −∞ above it"""
    ...


def causal_weights(scores):
    """softmax(scores + bias)"""
    ...
