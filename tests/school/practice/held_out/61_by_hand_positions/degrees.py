# mistake: the calculator is set to degrees.
position_0 = [0.0, 1.0, 0.0, 1.0]
position_1 = [0.0175, 0.9998, 0.0017, 1.0]
position_2 = [0.0349, 0.9994, 0.0035, 1.0]

dot_0_1 = 2.0
dot_1_2 = 2.0
dot_0_2 = 2.0
