# mistake: the scaled scores are right, but exps are those of the unscaled dot products
dots = [12.5, 30.8, 25.1]  # The, cat, sat
values = [[0, 0], [2, 0], [0, 3]]
width = 64

scaled = [1.56, 3.85, 3.14]
exps = [0.00, 1.00, 0.0033]
weights = [0.00, 1.00, 0.00]
out = [1.99, 0.01]
