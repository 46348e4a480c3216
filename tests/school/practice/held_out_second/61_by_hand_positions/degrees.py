# mistake: the calculator was set to degrees instead of radians
position_0 = [0.0, 1.0, 0.0, 1.0]
position_1 = [0.017, 1.0, 0.002, 1.0]
position_2 = [0.035, 0.999, 0.003, 1.0]

dot_0_1 = 2.0
dot_1_2 = 2.0
dot_0_2 = 2.0
