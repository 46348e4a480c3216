# mistake: unpatchify applies the permutation of patchify again instead of its inverse
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


def unpatchify(patches, P, height, width):
    B, n, size = patches.shape
    C = size // P**2
    x = patches.reshape(B, height // P, width // P, C, P, P)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, C, height, width)
