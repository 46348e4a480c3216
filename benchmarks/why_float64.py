"""A Llama by hand, in float64 throughout: who is right where float32 results differ.

Transformers itself computes norms, softmax and rotary angles in float32 whatever the weights are,
so its own float64 is none. Thirty lines of formulas are.
"""

import json

import torch
from safetensors.torch import load_file
from torch import Tensor

from why_models import Case
from why_quantities import HEADS, LENS, LENS_BETWEEN, LOGITS, PATTERNS, Quantities


def read_by_hand(case: Case) -> Quantities:
    """The quantities that need no definition beyond the model's."""
    config = json.loads((case.folder / "config.json").read_text())
    weights = {n: w.double() for n, w in load_file(case.folder / "model.safetensors").items()}
    H, K, N = (config[f"num_{n}"] for n in ("attention_heads", "key_value_heads", "hidden_layers"))
    D, eps = config["hidden_size"] // H, config["rms_norm_eps"]
    embedding = weights["model.embed_tokens.weight"]
    unembedding = weights.get("lm_head.weight", embedding)
    L = case.tokens.shape[1]
    angles = torch.arange(L).double()[:, None] / _theta(config) ** (
        torch.arange(0, D, 2).double() / D
    )
    is_future = torch.ones(L, L, dtype=torch.bool).triu(1)

    def norm(x: Tensor, name: str) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weights[f"{name}.weight"]

    def read_out(x: Tensor) -> Tensor:
        return norm(x, "model.norm") @ unembedding.mT

    x = embedding[case.tokens]  # B L C
    borders, between, patterns, heads = [read_out(x)], [], [], []
    for i in range(N):
        block = f"model.layers.{i}"

        def project(x: Tensor, name: str, block: str = block) -> Tensor:
            return x @ weights[f"{block}.{name}_proj.weight"].mT

        read = norm(x, f"{block}.input_layernorm")
        q, k, v = (
            project(read, f"self_attn.{n}").unflatten(-1, (-1, D)).transpose(1, 2) for n in "qkv"
        )
        q, k = _rotate(q, angles), _rotate(k, angles)
        k, v = (t.repeat_interleave(H // K, dim=1) for t in (k, v))
        scores = (q @ k.mT / D**0.5).masked_fill(is_future, -torch.inf)
        patterns.append(scores.softmax(-1))
        matrix = weights[f"{block}.self_attn.o_proj.weight"].mT.unflatten(0, (H, D))
        heads.append(torch.einsum("bhle,hec->blhc", patterns[-1] @ v, matrix))
        x = x + heads[-1].sum(2)
        between.append(read_out(x))
        read = norm(x, f"{block}.post_attention_layernorm")
        gate = torch.nn.functional.silu(project(read, "mlp.gate"))
        x = x + project(gate * project(read, "mlp.up"), "mlp.down")
        borders.append(read_out(x))
    return {
        LOGITS: borders[-1],
        LENS: torch.stack(borders),
        LENS_BETWEEN: torch.stack(between),
        PATTERNS: torch.stack(patterns),
        HEADS: torch.stack(heads),
    }


def _theta(config: dict) -> float:
    return (config.get("rope_parameters") or config)["rope_theta"]


def _rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary positions, feature i paired with feature i + D / 2."""
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
