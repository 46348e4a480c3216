# correct: slices in a loop over the patches
import torch


def patchify(images, P):
    H, W = images.shape[-2:]
    patches = [
        images[:, :, y : y + P, x : x + P].flatten(1) for y in range(0, H, P) for x in range(0, W, P)
    ]
    return torch.stack(patches, dim=1)


def unpatchify(patches, P, height, width):
    B, n, F = patches.shape
    image = patches.new_empty(B, F // (P * P), height, width)
    for i in range(n):
        row, column = divmod(i, width // P)
        y, x = row * P, column * P
        image[:, :, y : y + P, x : x + P] = patches[:, i].reshape(B, -1, P, P)
    return image
