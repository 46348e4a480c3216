# correct: an einsum with one-hot vectors
import torch
import torch.nn.functional as F


def embedding_gradient(tokens, grad_out, vocab_size):
    which = F.one_hot(tokens, vocab_size).to(grad_out.dtype)
    return torch.einsum("blv,blc->vc", which, grad_out)
