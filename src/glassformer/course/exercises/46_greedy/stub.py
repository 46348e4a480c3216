import torch


def greedy(model, source, begin, end, pad, max_new):
    """begin → the likeliest token → the likeliest token after that → … → end"""
    ...
