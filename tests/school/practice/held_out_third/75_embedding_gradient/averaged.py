# mistake: the gradients of a repeated token are averaged
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    onehot = torch.nn.functional.one_hot(tokens.flatten(), vocab_size).to(grad_out.dtype)
    total = onehot.T @ grad_out.flatten(0, 1)
    return total / onehot.sum(0).clamp(min=1)[:, None]
