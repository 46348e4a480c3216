"""What the library's model computed for one text, in files that a learner's process reads.

One file of tensors per part, and one of the weights, written once: numbers and a little JSON, so
that reading them can never run anything. They are mapped, not copied: a process pays for what it
touches.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from glassformer.school.practice.capstone.parts import TRACKS, Track

WHOLE = "whole"  # the kit of the joined model; every other is named after its part
_WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Kit:
    """One part's inputs, what the library's model made of them, the sizes, and the weights."""

    track: Track
    part: str
    tensors: Mapping[str, Tensor]
    settings: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    lent: SimpleNamespace = field(default_factory=SimpleNamespace)  # for parts that call others

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    @property
    def sizes(self) -> SimpleNamespace:
        """Sizes and constants of the model, by name."""
        return SimpleNamespace(**self.settings["sizes"])

    @property
    def output_matrix(self) -> Tensor:
        """The matrix of the logits: the embedding's where the two are tied."""
        return self.weights.get("head.weight", self.weights["embedding.weight"])

    def take(self, prefix: str) -> dict[str, Tensor]:
        """The weights below a prefix, with their names from there on."""
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in self.weights.items()
            if name.startswith(prefix)
        }


def write_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """The weights that all kits of a folder share."""
    save_file({name: each.contiguous() for name, each in weights.items()}, folder / _WEIGHTS)


def write_kit(
    folder: Path,
    track: str,
    part: str,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any],
) -> None:
    """The kit of one part."""
    about = {"track": track, "part": part, "settings": json.dumps(settings)}
    # A clone each: two names for one tensor cannot be saved.
    plain = {name: each.detach().clone().contiguous() for name, each in tensors.items()}
    save_file(plain, kit_file(folder, part), about)


def kit_file(folder: Path, part: str) -> Path:
    return folder / f"{part}.kit"


def read_kit(file: Path) -> Kit:
    """A kit as it was written."""
    with safe_open(file, "pt") as opened:
        about = opened.metadata()
    return Kit(
        track=TRACKS[about["track"]],
        part=about["part"],
        tensors=load_file(file),
        settings=json.loads(about["settings"]),
        weights=load_file(file.with_name(_WEIGHTS)),
    )
