# mistake: loops over the texts and uses += with an index inside each, so that repeats within a text are written once
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    grad = torch.zeros(vocab_size, grad_out.shape[-1], dtype=grad_out.dtype)
    for row, g in zip(tokens, grad_out):
        grad[row] += g
    return grad
