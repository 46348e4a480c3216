"""Faults that were written after the bisector was finished: nothing in it was made for them."""

from typing import Any

import torch

from analysis.planted_faults import LENGTH, Fault, layer


def interleave_rotation(model: Any) -> None:
    """Rows of q and k in the order of the other rotary layout: a wrong conversion."""
    for block in model.model.layers:
        for name in ("q_proj", "k_proj"):
            weight = getattr(block.self_attn, name).weight
            rows = torch.arange(16).view(2, 8).T.flatten()  # 0, 8, 1, 9 …
            heads = weight.view(-1, 16, 64)[:, rows]
            weight.copy_(heads.flatten(0, 1).clone())


def swap_keys_and_values(model: Any) -> None:
    attention = layer(model, 2).self_attn
    k, v = attention.k_proj.weight.clone(), attention.v_proj.weight.clone()
    attention.k_proj.weight.copy_(v)
    attention.v_proj.weight.copy_(k)


def hide_first_keys(_model: Any) -> dict[str, Any]:
    mask = torch.ones(1, LENGTH, dtype=torch.long)
    mask[:, :3] = 0
    return {"attention_mask": mask, "position_ids": torch.arange(LENGTH)[None]}


def halve_feed_forward(model: Any) -> None:
    layer(model, 2).mlp.down_proj.weight.mul_(0.5)


def stretch_positions(model: Any) -> None:
    model.model.rotary_emb.inv_freq.mul_(0.5)


HELD_OUT: dict[str, Fault] = {
    "rows in the other rotary layout": Fault(
        model="llama",
        plant=interleave_rotation,
        where="decoder.0.self",
        operands=("q", "k"),
    ),
    "keys and values swapped": Fault(
        model="llama",
        plant=swap_keys_and_values,
        where="decoder.2.self",
        operands=("k", "v"),
    ),
    "the first tokens taken for padding": Fault(
        model="llama",
        plant=hide_first_keys,
        where="decoder.0.self",
        operands=("mask",),
        kind="mask",
        values={"kind": "keys", "keys": [0, 1, 2]},
    ),
    "a feed-forward at half strength": Fault(
        model="llama",
        plant=halve_feed_forward,
        where="decoder.2.mlp",
        operands=("mlp",),
        kind="scaled",
        values={"factor": 0.5},
    ),
    "linear scaling of positions": Fault(
        model="llama",
        plant=stretch_positions,
        where="decoder.0.self",
        operands=("q", "k"),
        kind="rotated",
        values={"law": "factor", "factor": 0.5},
    ),
}
