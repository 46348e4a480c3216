# mistake: softmax first, then the later words set to 0, without renormalising
weights = [
    [0.88, 0.00, 0.00],
    [0.04, 0.71, 0.00],
    [0.01, 0.12, 0.88],
]
