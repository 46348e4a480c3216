# correct: cuts the squares out with slices in two loops, and puts them back in the same way
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    squares = [
        images[:, :, top : top + P, left : left + P].reshape(B, C * P * P)
        for top in range(0, H, P)
        for left in range(0, W, P)
    ]
    return torch.stack(squares, dim=1)


def unpatchify(patches, P, height, width):
    B, n, size = patches.shape
    C = size // (P * P)
    images = patches.new_zeros(B, C, height, width)
    per_row = width // P
    for i in range(n):
        top, left = i // per_row * P, i % per_row * P
        images[:, :, top : top + P, left : left + P] = patches[:, i].reshape(B, C, P, P)
    return images
