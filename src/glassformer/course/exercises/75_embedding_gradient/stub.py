import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    """∂loss/∂weight of out = weight[tokens]: (B, L), (B, L, C) → (V, C)"""
    ...
