# mistake: the rank of each state's own best token, which is always 0
import torch


def logit_lens(states, gain, unembed):
    x = states / states.square().mean(-1, keepdim=True).sqrt() * gain
    logits = x @ unembed.T
    final = logits.argmax(-1, keepdim=True)
    own = logits.gather(-1, final)
    return logits, (logits > own).sum(-1)
