# mistake: writes the cosine before the sine.
position_0 = [1.0, 0.0, 1.0, 0.0]
position_1 = [0.54, 0.84, 0.995, 0.0998]
position_2 = [-0.42, 0.91, 0.98, 0.199]

dot_0_1 = 1.54
dot_1_2 = 1.54
dot_0_2 = 0.56
