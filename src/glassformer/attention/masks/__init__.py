"""Masks as values: who may attend to whom. True means *may attend*, everywhere.

A mask is a formula over cells (b, h, q, k), written once: it serves dense tensors, tiles and
compiled kernels, and, as bounds on blocks, the skipping of work.
Reading order: mask, places, batches, explicit, essential.
"""

from glassformer.attention.masks.batches import Documents, Padding
from glassformer.attention.masks.essential import essential
from glassformer.attention.masks.explicit import Explicit, as_mask, from_torch_mha
from glassformer.attention.masks.mask import And, Mask, Not, Or
from glassformer.attention.masks.places import Causal, Prefix, Window

__all__ = [
    "And",
    "Causal",
    "Documents",
    "Explicit",
    "Mask",
    "Not",
    "Or",
    "Padding",
    "Prefix",
    "Window",
    "as_mask",
    "essential",
    "from_torch_mha",
]
