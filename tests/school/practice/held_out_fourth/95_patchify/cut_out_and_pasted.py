# correct: patches are cut out with slices and pasted back in two loops
import torch


def patchify(images, P):
    H, W = images.shape[2:]
    patches = []
    for top in range(0, H, P):
        for left in range(0, W, P):
            patches.append(images[:, :, top : top + P, left : left + P].flatten(1))
    return torch.stack(patches, dim=1)


def unpatchify(patches, P, height, width):
    B, n, size = patches.shape
    squares = iter(patches.reshape(B, n, size // (P * P), P, P).unbind(1))
    rows = []
    for _ in range(height // P):
        rows.append(torch.cat([next(squares) for _ in range(width // P)], dim=3))
    return torch.cat(rows, dim=2)
