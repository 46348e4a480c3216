# correct: computes the shapes from the sizes instead of writing numbers
B, L, S = 2, 7, 11
dim, context_dim = 32, 48
H, D, E = 4, 6, 5

w_k = (context_dim, H * D)
w_v = (context_dim, H * E)
w_o = (H * E, dim)
q = (B, H, L, D)
k = (B, H, S, D)
v = (B, H, S, E)
scores = q[:-1] + (S,)
out_heads = scores[:-1] + (E,)
out = (B, L, dim)
