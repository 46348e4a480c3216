"""An image as a sequence of squares: two axes are split, and six put in another order."""

from torch import Tensor


def patchify(images: Tensor, P: int) -> Tensor:
    """Squares as a sequence: (B, C, H, W) → (B, n, C · P · P)"""
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    x = x.permute(0, 2, 4, 1, 3, 5)  # B, row of patches, column, then C, y, x within one
    return x.reshape(B, (H // P) * (W // P), C * P * P)


def unpatchify(patches: Tensor, P: int, height: int, width: int) -> Tensor:
    """The image again: (B, n, C · P · P) → (B, C, height, width)"""
    B = patches.shape[0]
    x = patches.reshape(B, height // P, width // P, -1, P, P)
    x = x.permute(0, 3, 1, 4, 2, 5)  # B, C, row of patches, y, column, x
    return x.reshape(B, -1, height, width)
