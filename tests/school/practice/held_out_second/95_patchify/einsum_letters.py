# correct: einsum with letters for the permutation in both directions
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    return torch.einsum("bchpwq->bhwcpq", x).reshape(B, (H // P) * (W // P), C * P * P)


def unpatchify(patches, P, height, width):
    x = patches.reshape(len(patches), height // P, width // P, -1, P, P)
    return torch.einsum("bhwcpq->bchpwq", x).reshape(len(patches), -1, height, width)
