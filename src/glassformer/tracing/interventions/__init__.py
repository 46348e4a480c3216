"""Interventions: what is changed in a model while it runs."""

from glassformer.tracing.interventions.intervention import Intervention
from glassformer.tracing.interventions.values import (
    Ablate,
    Changes,
    Freeze,
    Knockout,
    Patch,
    Scale,
    Skip,
    Steer,
    Swap,
)

__all__ = [
    "Ablate",
    "Changes",
    "Freeze",
    "Intervention",
    "Knockout",
    "Patch",
    "Scale",
    "Skip",
    "Steer",
    "Swap",
]
