# mistake: writes the scores and weights with keys as rows and queries as columns.
keys_transposed = (2, 8, 16, 7)
scores = (2, 8, 7, 5)
weights = (2, 8, 7, 5)
out = (2, 8, 5, 32)
