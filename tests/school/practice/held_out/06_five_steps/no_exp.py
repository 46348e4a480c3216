# mistake: divides the scaled scores by their sum, without exp, to get the weights.
scaled = [1.5625, 3.85, 3.1375]
exps = [0.10, 1.00, 0.49]
weights = [0.18, 0.45, 0.37]
out = [0.90, 1.10]
