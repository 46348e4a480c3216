"""The shapes, computed with tensors that hold no numbers."""

import torch

B, S, L, dim, n_heads, hidden_dim, vocab_size = 4, 11, 7, 512, 8, 2048, 10000
source, target = torch.zeros(B, S), torch.zeros(B, L)  # tokens
x = torch.empty(B, L, dim, device="meta")  # of the target
encoded = torch.empty(B, S, dim, device="meta")  # the output of the encoder


def heads(y: torch.Tensor) -> torch.Tensor:
    """(B, L, C) → (B, H, L, D)"""
    return y.unflatten(-1, (n_heads, -1)).transpose(1, 2)


source_mask = tuple((source != 0)[:, None, None, :].shape)
context = tuple(encoded.shape)
encoder_scores = tuple((heads(encoded) @ heads(encoded).mT).shape)
decoder_scores = tuple((heads(x) @ heads(x).mT).shape)
cross_q = tuple(heads(x).shape)
cross_k = tuple(heads(encoded).shape)
cross_scores = tuple((heads(x) @ heads(encoded).mT).shape)
hidden = tuple((x @ torch.empty(dim, hidden_dim, device="meta")).shape)
logits = tuple((x @ torch.empty(dim, vocab_size, device="meta")).shape)
