# mistake: the keys are transposed by reversing all dimensions
q = (2, 8, 5, 16)
k = (2, 8, 7, 16)
v = (2, 8, 7, 32)

keys_transposed = (16, 7, 8, 2)
scores = (2, 8, 5, 7)
weights = (2, 8, 5, 7)
out = (2, 8, 5, 32)
