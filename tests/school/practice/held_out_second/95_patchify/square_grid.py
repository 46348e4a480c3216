# mistake: unpatchify takes the grid of patches for a square, with √n rows and columns
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.view(B, C, H // P, P, W // P, P)
    return x.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def unpatchify(patches, P, height, width):
    B, n, size = patches.shape
    side = int(n**0.5)
    x = patches.reshape(B, side, side, size // P**2, P, P)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(B, size // P**2, height, width)
