# mistake: the dot products are not divided by √64 before exp.
scaled = [12.5, 30.8, 25.1]
exps = [0.0, 1.0, 0.00]
weights = [0.0, 1.0, 0.0]
out = [1.99, 0.01]
