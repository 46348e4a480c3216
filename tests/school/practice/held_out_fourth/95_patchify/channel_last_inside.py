# mistake: two at once: the channel comes last within a patch, and the patches are listed column by column
def patchify(images, P):
    B, C, H, W = images.shape
    cut = images.reshape(B, C, H // P, P, W // P, P)
    return cut.permute(0, 4, 2, 3, 5, 1).reshape(B, -1, C * P * P)


def unpatchify(patches, P, height, width):
    B = patches.shape[0]
    cut = patches.reshape(B, width // P, height // P, P, P, -1)
    return cut.permute(0, 5, 2, 3, 1, 4).reshape(B, -1, height, width)
