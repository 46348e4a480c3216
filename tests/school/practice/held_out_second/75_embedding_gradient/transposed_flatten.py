# mistake: flattens the tokens column by column (tokens.T) but the gradients row by row, so that they do not belong together
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    C = grad_out.shape[-1]
    grad = torch.zeros((vocab_size, C), dtype=grad_out.dtype)
    return grad.index_add(0, tokens.T.flatten(), grad_out.reshape(-1, C))
