# mistake: two at once: the scores are not scaled, and the weights after dropout are returned
def attention(q, k, v, dropout=None):
    p_attn = q.matmul(k.transpose(-2, -1)).softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return p_attn.matmul(v), p_attn
