# mistake: the patches run column by column
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.view(B, C, H // P, P, W // P, P).permute(0, 4, 2, 1, 3, 5)
    return x.reshape(B, -1, C * P * P)


def unpatchify(patches, P, height, width):
    B, n, F = patches.shape
    x = patches.view(B, width // P, height // P, F // P**2, P, P).permute(0, 3, 2, 4, 1, 5)
    return x.reshape(B, -1, height, width)
