# mistake: sums over the length, so the scores are (64, 64).
projected = (10, 60, 512)
split = (10, 60, 8, 64)
q = (10, 8, 60, 64)
keys_transposed = (10, 8, 64, 60)
scores = (10, 8, 64, 64)
out_heads = (10, 8, 60, 64)
out = (10, 60, 512)
