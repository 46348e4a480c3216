# mistake: divides each score by the sum of its row, without exp.
weights = [
    [1.00, 0.00, 0.00],
    [0.43, 0.57, 0.00],
    [0.20, 0.35, 0.45],
]
