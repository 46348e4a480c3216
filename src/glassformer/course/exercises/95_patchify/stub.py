import torch


def patchify(images, P):
    """Squares as a sequence: (B, C, H, W) → (B, n, C · P · P)"""
    ...


def unpatchify(patches, P, height, width):
    """The image again: (B, n, C · P · P) → (B, C, height, width)"""
    ...
