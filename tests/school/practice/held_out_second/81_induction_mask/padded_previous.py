# correct: builds the vector of previous tokens with an impossible one in front, and compares positions for j ≤ i
import torch


def induction_mask(tokens):
    length = tokens.shape[0]
    previous = torch.cat([tokens.new_full((1,), int(tokens.min()) - 1), tokens[:-1]])
    place = torch.arange(length)
    return (tokens.view(-1, 1) == previous.view(1, -1)) & (place.view(1, -1) <= place.view(-1, 1))
