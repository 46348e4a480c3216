# mistake: unpatchify assumes a square grid of patches
import math

import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def unpatchify(patches, P, height, width):
    B, n, F = patches.shape
    side = math.isqrt(n)
    x = patches.reshape(B, side, n // side, F // P**2, P, P).permute(0, 3, 1, 4, 2, 5)
    return x.reshape(B, F // P**2, side * P, n // side * P)
