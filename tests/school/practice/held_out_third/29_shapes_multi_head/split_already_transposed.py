# mistake: split is given after the transpose, with the heads before the length
projected = (10, 60, 512)
split = (10, 8, 60, 64)
q = (10, 8, 60, 64)
keys_transposed = (10, 8, 64, 60)
scores = (10, 8, 60, 60)
out_heads = (10, 8, 60, 64)
out = (10, 60, 512)
