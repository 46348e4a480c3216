"""How many tokens the nucleus holds, by temperature; beside it min-p."""

import torch


def measure() -> dict[str, float]:
    """Of 5,000 tokens with normal logits: how many top-p 0.9 and min-p 0.1 keep, on average."""
    logits = 2 * torch.randn(200, 5000)
    sizes = {}
    for name in ("top-p 0.9", "min-p 0.1"):
        for temperature in (0.5, 1.0, 2.0):
            p = (logits / temperature).softmax(dim=-1).sort(descending=True).values
            before = p.cumsum(dim=-1) - p
            kept = before < 0.9 if name == "top-p 0.9" else p >= 0.1 * p[:, :1]
            sizes[f"{name}, T = {temperature}"] = kept.sum(dim=-1).float().mean().item()
    return sizes


answer = "b"
