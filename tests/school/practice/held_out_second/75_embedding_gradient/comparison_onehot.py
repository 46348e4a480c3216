# correct: one-hot by comparison with arange, contracted with einsum
import torch


def embedding_gradient(tokens, grad_out, vocab_size):
    table = torch.arange(vocab_size, device=tokens.device)
    onehot = (tokens.unsqueeze(-1) == table).to(grad_out.dtype)
    return torch.einsum("blv,blc->vc", onehot, grad_out)
