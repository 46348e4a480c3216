# mistake: gives the output the width of the queries instead of that of the values.
keys_transposed = (2, 8, 16, 7)
scores = (2, 8, 5, 7)
weights = (2, 8, 5, 7)
out = (2, 8, 5, 16)
