# correct: permute, contiguous and view
def merge_heads(x):
    b, h, l, d = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(b, l, -1)
