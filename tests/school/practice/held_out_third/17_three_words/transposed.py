# mistake: the future is masked below the diagonal: each word sees itself and later ones
weights = [
    [0.88, 0.12, 0.01],
    [0.00, 0.73, 0.27],
    [0.00, 0.00, 1.00],
]
