# mistake: casts to float32 and forgets to cast back
import torch
def softmax(scores):
    s = scores.float()
    s = s - s.amax(-1, keepdim=True)
    e = s.exp()
    return e / e.sum(-1, keepdim=True)
