# mistake: the scores are thought to have the head width: 60 x 64
projected = (10, 60, 512)
split = (10, 60, 8, 64)
q = (10, 8, 60, 64)
keys_transposed = (10, 8, 64, 60)
scores = (10, 8, 60, 64)
out_heads = (10, 8, 60, 64)
out = (10, 60, 512)
