# correct: computed from names, as lists turned into tuples
B, H = 2, 4
x_len, x_dim = 7, 32
c_len, c_dim = 11, 48
head, value = 6, 5
w_k = tuple([c_dim, H * head])
w_v = tuple([c_dim, H * value])
w_o = tuple([H * value, x_dim])
q = tuple([B, H, x_len, head])
k = tuple([B, H, c_len, head])
v = tuple([B, H, c_len, value])
scores = tuple([B, H, x_len, c_len])
out_heads = tuple([B, H, x_len, value])
out = tuple([B, x_len, x_dim])
