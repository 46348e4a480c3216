# mistake: the result is float32, whatever the dtype of the gradient
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    table = torch.zeros(vocab_size, grad_out.shape[-1])
    table.index_add_(0, tokens.reshape(-1), grad_out.reshape(-1, grad_out.shape[-1]).float())
    return table
