# mistake: reverses the last three dimensions of k in place of swapping the last two.
keys_transposed = (2, 16, 7, 8)
scores = (2, 8, 5, 7)
weights = (2, 8, 5, 7)
out = (2, 8, 5, 32)
