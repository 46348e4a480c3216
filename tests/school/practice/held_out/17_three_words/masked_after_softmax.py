# mistake: masks after softmax, so the first two rows do not sum to 1.
weights = [
    [0.88, 0.00, 0.00],
    [0.04, 0.71, 0.00],
    [0.01, 0.12, 0.88],
]
