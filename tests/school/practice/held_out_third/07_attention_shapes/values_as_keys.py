# mistake: the output gets the width of the keys, 16, instead of that of the values
q = (2, 8, 5, 16)
k = (2, 8, 7, 16)
v = (2, 8, 7, 32)

keys_transposed = (2, 8, 16, 7)
scores = (2, 8, 5, 7)
weights = (2, 8, 5, 7)
out = (2, 8, 5, 16)
