import torch


def answer_log_p(logits, tokens, mask):
    """The log-probability of each answer: (B, L, V), (B, L), (B, L) → (B,)"""
    ...


def dpo_loss(better, worse, ref_better, ref_worse, beta):
    """The DPO loss, on average over the pairs: four times (B,) → a number"""
    ...
