# mistake: a plain reshape, without a permutation
import torch


def patchify(images, P):
    B, C, H, W = images.shape
    return images.reshape(B, (H // P) * (W // P), C * P * P)


def unpatchify(patches, P, height, width):
    B = patches.shape[0]
    return patches.reshape(B, -1, height, width)
