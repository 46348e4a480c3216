# correct: more decimals than asked, and integers for the exact ones
weights = [
    [1, 0, 0],
    [0.0474, 0.9526, 0],
    [0.0059, 0.1185, 0.8756],
]
