# mistake: takes 8 for the width of a head and 64 for the number of heads.
projected = (10, 60, 512)
split = (10, 60, 64, 8)
q = (10, 64, 60, 8)
keys_transposed = (10, 64, 8, 60)
scores = (10, 64, 60, 60)
out_heads = (10, 64, 60, 8)
out = (10, 60, 512)
