# mistake: degrees instead of radians
position_0 = [0, 1, 0, 1]
position_1 = [0.02, 1.00, 0.00, 1.00]
position_2 = [0.03, 1.00, 0.00, 1.00]

dot_0_1 = 2.00
dot_1_2 = 2.00
dot_0_2 = 2.00
