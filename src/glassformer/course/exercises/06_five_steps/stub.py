dots = [12.5, 30.8, 25.1]  # The, cat, sat
values = [[0, 0], [2, 0], [0, 3]]
width = 64

scaled = [..., ..., ...]
exps = [..., ..., ...]
weights = [..., ..., ...]
out = [..., ...]
