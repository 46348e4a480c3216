# mistake: divides the position by 100 instead of 10 for the slow pair: base^(2i / 4) taken with an exponent of 1
position_0 = [0.0, 1.0, 0.0, 1.0]
position_1 = [0.841, 0.540, 0.010, 1.000]
position_2 = [0.909, -0.416, 0.020, 1.000]

dot_0_1 = 1.540
dot_1_2 = 1.540
dot_0_2 = 0.584
