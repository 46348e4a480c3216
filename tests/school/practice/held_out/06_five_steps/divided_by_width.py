# mistake: divides by 64 instead of by √64 and carries the numbers on.
scaled = [0.20, 0.48, 0.39]
exps = [0.75, 1.00, 0.91]
weights = [0.28, 0.38, 0.34]
out = [0.75, 1.03]
