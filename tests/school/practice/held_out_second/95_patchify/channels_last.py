# mistake: puts the channel last within a patch (row, column, channel), as MAE does; unpatchify undoes the same
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(B, -1, P * P * C)


def unpatchify(patches, P, height, width):
    B = patches.shape[0]
    x = patches.reshape(B, height // P, width // P, P, P, -1)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(B, -1, height, width)
