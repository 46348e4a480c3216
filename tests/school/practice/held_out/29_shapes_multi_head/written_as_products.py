# correct: the numbers are computed from names
B, L, C, H = 10, 60, 512, 8
D = C // H
projected = (B, L, C)
split = (B, L, H, D)
q = (B, H, L, D)
keys_transposed = (B, H, D, L)
scores = (B, H, L, L)
out_heads = (B, H, L, D)
out = (B, L, H * D)
