# mistake: applies softmax to all three scores of each row and masks nothing.
weights = [
    [0.876, 0.118, 0.006],
    [0.035, 0.705, 0.259],
    [0.006, 0.118, 0.876],
]
