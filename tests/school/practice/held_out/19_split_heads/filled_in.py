# correct: fills an empty tensor head by head
def split_heads(x, n_heads):
    batch, length, width = x.shape
    head_width = width // n_heads
    heads = x.new_empty(batch, n_heads, length, head_width)
    for h in range(n_heads):
        heads[:, h] = x[:, :, h * head_width : (h + 1) * head_width]
    return heads
