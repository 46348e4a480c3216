# mistake: the heads stay behind the length: (B, L, H, D)
def split_heads(x, n_heads):
    b, l, c = x.size()
    return x.view(b, l, n_heads, c // n_heads)
