# mistake: += on an index, which adds only once where a token repeats
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    grad = torch.zeros(vocab_size, grad_out.shape[-1], dtype=grad_out.dtype)
    for b in range(tokens.shape[0]):
        grad[tokens[b]] += grad_out[b]
    return grad
