# mistake: cosine before sine in each pair
position_0 = [1, 0, 1, 0]
position_1 = [0.54, 0.84, 1.00, 0.10]
position_2 = [-0.42, 0.91, 0.98, 0.20]

dot_0_1 = 1.54
dot_1_2 = 1.54
dot_0_2 = 0.56
