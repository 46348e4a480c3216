"""Lenses that translate before they read: an affine map for each border of the residual stream.

The logit lens reads an early state as if it were the last one. A tuned lens (Belrose et al. 2023)
or a Jacobian lens (Gurnee et al. 2026) first maps it to where the last one would be:

    readout(A h + b)

The maps belong to one model, whose fingerprint they carry.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from glassformer.errors import GlassformerError, TraceError
from glassformer.parsing import parse_json
from glassformer.paths import user_path
from glassformer.settings import Count, as_plain, quote, read_settings, summarize_error
from glassformer.storage import atomic_file
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Stream

VERSION = 1
LensKind = Literal["tuned", "jacobian"]
_HEADER = "glassformer.lens"
_MOST_ROWS = 4096  # of the unembedding that are hashed


@dataclass(frozen=True, kw_only=True, slots=True)
class Fingerprint:
    """What tells models apart: their sizes, and a hash of the unembedding."""

    n_layers: Count
    dim: Count
    vocab_size: Count
    unembedding: str

    @classmethod
    def of(cls, stream: Stream, readout: Readout) -> "Fingerprint":
        """The fingerprint of the model that a stream and its readout are of.

        The weights are hashed in bfloat16, so a model loaded in another precision is the same one.
        """
        matrix = readout.find_unembedding(stream.end[:1, :1])
        rows = matrix[:: 1 + len(matrix) // _MOST_ROWS].to(torch.bfloat16).contiguous().cpu()
        return cls(
            n_layers=len({part.layer for part in stream.parts}),
            dim=stream.start.shape[-1],
            vocab_size=len(matrix),
            unembedding=hashlib.sha256(rows.view(torch.uint8).numpy().tobytes()).hexdigest(),
        )

    def __str__(self) -> str:
        return f"{self.n_layers} layers, width {self.dim} and {self.vocab_size:,} tokens"


@dataclass(eq=False, frozen=True, kw_only=True)
class AffineLens:
    """An affine map for each of N borders; `gf.train_lens` and `gf.fit_jacobian_lens` make one.

    `plain` and `mapped` are the divergences from the end, in nats, of the logit lens and of this
    lens, averaged over held-out positions.

    ::

        lens = gf.train_lens(model, texts)
        lens.save("writer.lens")
        gf.logit_lens(trace, lens=gf.AffineLens.load("writer.lens"))

    >>> import glassformer as gf
    >>> writer = gf.load("writer")
    >>> texts = ["And God said unto Moses, Go down, for thy people have corrupted themselves."] * 4
    >>> lens = gf.fit_jacobian_lens(writer, texts, layers=[3], directions=8, skip=2)
    >>> lens
    AffineLens(jacobian, decoder.3.mlp; 5 layers, width 256 and 6,000 tokens)
    """

    kind: LensKind
    stack: str
    borders: list[str]
    matrices: Float[Tensor, "N C C"]
    biases: Float[Tensor, "N C"]
    fingerprint: Fingerprint
    plain: list[float]
    mapped: list[float]

    def map(self, border: str, x: Float[Tensor, "L C"]) -> Float[Tensor, "L C"]:
        """Where the last state would be, seen from the state at a border."""
        i = self.borders.index(border)
        A, b = (each[i].to(x.device) for each in (self.matrices, self.biases))
        return (x.to(A.dtype) @ A.mT + b).to(x.dtype)

    def check(self, stream: Stream, readout: Readout) -> None:
        """Refuse the stream of another model, or of another stack."""
        if stream.name != self.stack:
            raise TraceError(
                f"This lens was made for the stream of {self.stack!r}; got that of {stream.name!r}."
            )
        other = Fingerprint.of(stream, readout)
        if other == self.fingerprint:
            return
        if str(other) == str(self.fingerprint):
            raise TraceError(
                "This lens was made for another model of the same size: their unembeddings differ. "
                "Make one for this model."
            )
        raise TraceError(
            f"This lens was made for a model with {self.fingerprint}; this one has {other}."
        )

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, whole or not at all; it replaces only another lens."""
        header = {
            "version": VERSION,
            "kind": self.kind,
            "stack": self.stack,
            "borders": self.borders,
            "plain": self.plain,
            "mapped": self.mapped,
            "fingerprint": as_plain(self.fingerprint),
        }
        place = user_path(path, TraceError)
        with atomic_file(place, TraceError, mark=f'"{_HEADER}"'.encode()) as unfinished:
            save_file(
                {"matrices": self.matrices.contiguous(), "biases": self.biases.contiguous()},
                unfinished,
                metadata={_HEADER: json.dumps(header)},
            )

    @classmethod
    def load(cls, path: str | Path) -> "AffineLens":
        """Read a lens that `save` wrote; another file, or a damaged one, raises a TraceError."""
        return _load(user_path(path, TraceError))

    def __repr__(self) -> str:
        ends = f"{self.borders[0]} … {self.borders[-1]}"
        shown = ends if len(self.borders) > 1 else self.borders[0]
        return f"AffineLens({self.kind}, {shown}; {self.fingerprint})"

    def __str__(self) -> str:
        width = max(map(len, self.borders))
        lines = [f"{self.kind} lens: divergence from the end on held-out text, in nats"]
        lines.append(f"  {'':{width}}  {'plain':>8}  {self.kind:>8}")
        for border, before, after in zip(self.borders, self.plain, self.mapped, strict=True):
            lines.append(f"  {border:{width}}  {before:8.3f}  {after:8.3f}")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class _LensHeader:
    version: int
    kind: LensKind
    stack: str
    borders: tuple[str, ...]
    plain: tuple[float, ...]
    mapped: tuple[float, ...]
    fingerprint: Fingerprint


def _load(path: Path) -> AffineLens:
    if not path.is_file():
        raise TraceError(f"A lens must be a file; {path} is not there.")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(_HEADER)
            if header is None:
                raise TraceError(f"{path} must be a lens of glassformer; it is another file.")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(
            f"{path} is not a lens, or was not written to its end: {summarize_error(error)}."
        ) from None
    described = parse_json(header, f"The header of {path}", TraceError)
    version = described.get("version") if isinstance(described, dict) else None
    if version != VERSION:
        raise TraceError(
            f"{path} is a lens of version {quote(version)}; this glassformer reads version "
            f"{VERSION}. Make it again, or use the version that wrote it."
        )
    try:
        found = read_settings(_LensHeader, described, "The header")
        return _decode(found, tensors)
    except GlassformerError as error:
        raise TraceError(f"{path} is damaged: {str(error).rstrip('.')}.") from None


def _decode(header: _LensHeader, tensors: dict[str, Tensor]) -> AffineLens:
    N, C = len(header.borders), header.fingerprint.dim
    shapes: dict[str, Any] = {"matrices": (N, C, C), "biases": (N, C)}
    for name, shape in shapes.items():
        tensor = tensors.get(name)
        if tensor is None or tensor.shape != shape or not tensor.is_floating_point():
            raise TraceError(f"{name} must have shape {shape}")
    if not N or len(header.plain) != N or len(header.mapped) != N:
        raise TraceError("it must have two divergences for each of its borders")
    return AffineLens(
        kind=header.kind,
        stack=header.stack,
        borders=list(header.borders),
        matrices=tensors["matrices"],
        biases=tensors["biases"],
        fingerprint=header.fingerprint,
        plain=list(header.plain),
        mapped=list(header.mapped),
    )
