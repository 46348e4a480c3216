# correct: computed from named sizes
B, L, C = 2, 7, 32
S, M = 11, 48
H, D, E = 4, 6, 5
w_k, w_v, w_o = (M, H * D), (M, H * E), (H * E, C)
q, k, v = (B, H, L, D), (B, H, S, D), (B, H, S, E)
scores = q[:-1] + k[-2:-1]
out_heads = scores[:-1] + v[-1:]
out = (B, L, C)
