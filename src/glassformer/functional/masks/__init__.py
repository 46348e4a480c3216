"""Masks as values: who may attend to whom. True means *may attend*, everywhere.

A mask is a formula over cells (b, h, q, k), used for dense tensors, tiles and compiled kernels
alike. Its bounds on blocks tell which blocks can be skipped.
Reading order: mask, positional, sequences, packed_rows, explicit, simplification, derived;
expression reads masks written as text.
"""

from glassformer.functional.masks.derived import current_stream, derive
from glassformer.functional.masks.explicit import Explicit, as_mask, from_torch_mha
from glassformer.functional.masks.mask import And, Mask, Not, Or
from glassformer.functional.masks.packed_rows import PackedRow, Sequences
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
    "PackedRow",
    "Padding",
    "Prefix",
    "Sequences",
    "Window",
    "as_mask",
    "current_stream",
    "derive",
    "from_torch_mha",
    "simplify",
]
