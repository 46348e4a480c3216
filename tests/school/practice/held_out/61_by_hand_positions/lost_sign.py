# mistake: loses the sign of cos(2), so two of the dot products are wrong too.
position_0 = [0.0, 1.0, 0.0, 1.0]
position_1 = [0.84, 0.54, 0.10, 0.995]
position_2 = [0.91, 0.42, 0.20, 0.98]

dot_0_1 = 1.54
dot_1_2 = 1.98
dot_0_2 = 1.40
