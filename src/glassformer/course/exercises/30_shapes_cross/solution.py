"""The shapes of cross-attention, from the names of the dimensions."""

B, L, C = 2, 7, 32  # x
S, X = 11, 48  # context, with the same B
H, D, E = 4, 6, 5  # heads, head_dim, value_dim

w_k = (X, H * D)
w_v = (X, H * E)
w_o = (H * E, C)

q = (B, H, L, D)
k = (B, H, S, D)  # as wide as q, for the dot product
v = (B, H, S, E)  # as long as k: each key has one value

scores = (B, H, L, S)
out_heads = (B, H, L, E)
out = (B, L, C)
