"""Masks as values: who may attend to whom. True means *may attend*, everywhere.

A mask is a formula over cells (b, h, q, k), written once: it serves dense tensors, tiles and
compiled kernels, and, as bounds on blocks, the skipping of work.
Reading order: mask, positional, sequences, explicit, simplification.
"""

from glassformer.functional.masks.explicit import Explicit, as_mask, from_torch_mha
from glassformer.functional.masks.mask import And, Mask, Not, Or
from glassformer.functional.masks.positional import Causal, Prefix, Window
from glassformer.functional.masks.sequences import Documents, Padding
from glassformer.functional.masks.simplification import simplify

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
    "from_torch_mha",
    "simplify",
]
