# mistake: rows are assigned, so a repeated token keeps only its last gradient
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    grad = torch.zeros(vocab_size, grad_out.shape[-1], dtype=grad_out.dtype)
    grad[tokens.flatten()] = grad_out.flatten(0, 1)
    return grad
