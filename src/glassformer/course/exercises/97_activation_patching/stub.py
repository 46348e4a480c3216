import torch


def run(parts, x, patches):
    """The final stream, and what each part added"""
    ...


def patching_effects(parts, clean, corrupt, metric):
    """How much of the metric each part restores: one number for each part"""
    ...
