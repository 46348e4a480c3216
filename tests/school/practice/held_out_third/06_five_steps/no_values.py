# mistake: out holds the weights of cat and sat, the values are forgotten
dots = [12.5, 30.8, 25.1]
values = [[0, 0], [2, 0], [0, 3]]
width = 64

scaled = [1.5625, 3.85, 3.1375]
exps = [0.10, 1.00, 0.49]
weights = [0.06, 0.63, 0.31]
out = [0.63, 0.31]
