# correct: one-hot vectors from a comparison, and einsum
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    onehot = (tokens[..., None] == torch.arange(vocab_size)).to(grad_out.dtype)
    return torch.einsum("blv,blc->vc", onehot, grad_out)
