# mistake: no mask: the softmax of all three scores in every row
weights = [
    [0.88, 0.12, 0.01],
    [0.04, 0.71, 0.26],
    [0.01, 0.12, 0.88],
]
