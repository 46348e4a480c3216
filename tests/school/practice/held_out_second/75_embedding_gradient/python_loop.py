# correct: a Python loop over all tokens that adds up row by row
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    grad = grad_out.new_zeros(vocab_size, grad_out.shape[-1])
    for b in range(tokens.shape[0]):
        for l in range(tokens.shape[1]):
            grad[int(tokens[b, l])] += grad_out[b, l]
    return grad
