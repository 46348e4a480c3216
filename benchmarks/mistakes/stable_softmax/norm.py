# mistake: divides by the Euclidean norm of the exponentials
def softmax(scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.norm(dim=-1, keepdim=True)
