# mistake: lists the patches column by column instead of row by row
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.permute(0, 4, 2, 1, 3, 5).reshape(B, -1, C * P * P)


def unpatchify(patches, P, height, width):
    B = patches.shape[0]
    x = patches.reshape(B, width // P, height // P, -1, P, P)
    return x.permute(0, 3, 2, 4, 1, 5).reshape(B, -1, height, width)
