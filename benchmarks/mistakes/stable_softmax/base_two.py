# mistake: powers of 2 instead of e
def softmax(scores):
    s = scores - scores.amax(-1, keepdim=True)
    e = 2 ** s
    return e / e.sum(-1, keepdim=True)
