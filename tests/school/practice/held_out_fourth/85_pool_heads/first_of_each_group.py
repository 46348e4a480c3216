# mistake: takes the first head of each group instead of the mean
def pool_heads(weight, n_heads, n_kv_heads):
    heads = weight.reshape(n_heads, -1, weight.shape[1])
    return heads[:: n_heads // n_kv_heads].reshape(-1, weight.shape[1])
