# mistake: within a patch the channel is last (row, column, channel), in both directions
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(B, -1, C * P * P)


def unpatchify(patches, P, height, width):
    B, n, F = patches.shape
    C = F // (P * P)
    x = patches.reshape(B, height // P, width // P, P, P, C)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(B, C, height, width)
