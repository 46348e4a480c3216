import torch


def greedy(model, source, begin, end, pad, max_new):
    """begin → the most likely token → the most likely token after that → … → end"""
    ...
