"""Interventions as one safetensors file: their text, and beside it what no text can hold.

The header has the text, in which `$0` names the first of the values that follow: a tensor, a mask
or a bias, or an excerpt of a trace. An excerpt is one site, or what one part added, or one state of
the stream: what the intervention reads, and no more.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from glassformer.errors import GlassformerError, InterventionError, TraceError
from glassformer.functional import Bias, Mask
from glassformer.paths import user_path
from glassformer.settings import Whole, read_settings
from glassformer.tracing.files import RunHeader, decode_run, encode_run
from glassformer.tracing.interventions.editor import changes_site
from glassformer.tracing.interventions.expression import read_changes
from glassformer.tracing.interventions.values import Changes, Intervention, Patch
from glassformer.tracing.mask_codec import decode_mask, encode_mask
from glassformer.tracing.stream import Part, Stream
from glassformer.tracing.tensor_file import read_tensors, write_tensors
from glassformer.tracing.trace import Run, Trace

_KIND = "changes"


def save_changes(
    changes: Intervention | Changes | Collection[Intervention], path: str | Path
) -> None:
    """Write interventions into one file, whole or not at all.

    Of a trace, only what they read is saved. `gf.load_changes` reads the file, and so does --change
    of the command line.

    >>> import tempfile
    >>> import glassformer as gf
    >>> path = tempfile.mkdtemp() + "/quiet.changes"
    >>> gf.save_changes(gf.Ablate("decoder.3.self", head=2) & gf.Skip("decoder.1"), path)
    >>> print(gf.load_changes(path))
    ablate(decoder.3.self, head=2) & skip(decoder.1)
    """
    place = user_path(path, InterventionError)
    held = _Held()
    text = " & ".join(each.format(partial(held.refer, each)) for each in Changes.of(changes))
    read_changes(text, held.values)  # what could not be read again is not written
    header = {"changes": text, "held": held.headers}
    write_tensors(place, _KIND, held.tensors, header, InterventionError)


def load_changes(path: str | Path) -> Changes:
    """Read interventions that `gf.save_changes` wrote.

    Another file, or a damaged one, is an error. Nothing in it is run.

    >>> import tempfile
    >>> import torch
    >>> import glassformer as gf
    >>> path = tempfile.mkdtemp() + "/louder.changes"
    >>> gf.save_changes(gf.Steer("decoder.3.mlp", torch.ones(8), factor=2.0), path)
    >>> gf.load_changes(path)
    <steer(decoder.3.mlp, vector=tensor(8), factor=2.0)>
    """
    place = user_path(path, InterventionError)
    described, tensors = read_tensors(place, _KIND, "Save them again", InterventionError)
    # Copied to aligned memory: some products of other places have other bits (MKL on AMD).
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    try:
        header = read_settings(_Header, described, "The header")
        held = [_decode(each, f"{i}", tensors) for i, each in enumerate(header.held)]
        return read_changes(header.changes, held)
    except GlassformerError as error:
        raise InterventionError(f"{place} is damaged: {str(error).rstrip('.')}.") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class _HeldHeader:
    """A value beside the text."""

    kind: Literal["tensor", "mask", "site", "stream"]
    mask: dict[str, Any] | None = None
    run: RunHeader | None = None  # with one site
    place: str | None = None  # of what a stream has: a part, or a state
    rows: tuple[Whole, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Header:
    version: int
    changes: str
    held: tuple[_HeldHeader, ...]


class _Held:
    """The values beside the text; those that several interventions read are there once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.headers: list[dict[str, Any]] = []
        self.tensors: dict[str, Tensor] = {}
        self.known: dict[Any, int] = {}

    def refer(self, edit: Intervention, value: Any) -> str:
        """How the text names a value of this intervention."""
        rows = _find_rows(edit)
        key = (id(value), edit.place, changes_site(edit), getattr(edit, "what", None), rows)
        if key not in self.known:
            self.known[key] = len(self.values)
            self.values.append(value)
            self.headers.append(self._encode(edit, value, f"{len(self.headers)}", rows))
        return f"${self.known[key]}"

    def _encode(
        self, edit: Intervention, value: Any, where: str, rows: tuple[int, ...] | None
    ) -> dict[str, Any]:
        if isinstance(value, Tensor):
            self.tensors[where] = value
            return {"kind": "tensor"}
        if isinstance(value, Mask | Bias):
            return {"kind": "mask", "mask": encode_mask(value, where, self.tensors)}
        assert isinstance(value, Trace)
        if changes_site(edit):
            run = Run({edit.place: value[edit.place]})
            return {"kind": "site", "run": encode_run(run, where, self.tensors)}
        stream = value.residual(edit.place.partition(".")[0])
        is_state = getattr(edit, "what", "") == "state" or edit.place.endswith(".start")
        values = stream.after(edit.place) if is_state else stream.part(edit.place).value
        kept = stream.rows
        if rows is not None:
            known = range(values.shape[1]) if kept is None else kept
            at = [i for i, position in enumerate(known) if position in rows]
            values, kept = values[:, at], tuple(known[i] for i in at)
        self.tensors[where] = values
        return {"kind": "stream", "place": edit.place, "rows": kept}


def _find_rows(edit: Intervention) -> tuple[int, ...] | None:
    """The positions that are read; None for all, or where they depend on how long the text is."""
    if not isinstance(edit, Patch) or changes_site(edit):
        return None
    positions = edit.positions
    if positions is None or isinstance(positions, slice):
        return None
    chosen = tuple([positions] if isinstance(positions, int) else positions)
    return tuple(sorted(chosen)) if all(i >= 0 for i in chosen) else None


def _decode(header: _HeldHeader, where: str, tensors: dict[str, Tensor]) -> Any:
    if header.kind == "mask":
        return decode_mask(header.mask, tensors)
    if header.kind == "site":
        if header.run is None:
            raise TraceError(f"value {where} must have a run")
        return Trace([decode_run(header.run, where, tensors)])
    if where not in tensors:
        raise TraceError(f"the tensor {where} is missing")
    if header.kind == "tensor":
        return tensors[where]
    return _decode_stream(header, tensors[where])


def _decode_stream(header: _HeldHeader, values: Tensor) -> Trace:
    """A trace whose stream has this one part, and this one state."""
    n = values.shape[1] if values.ndim == 3 and values.is_floating_point() else -1
    if n < 0 or (header.rows is not None and len(set(header.rows)) != n):
        raise TraceError("a stream must be (B, L, C) numbers, and name its rows")
    if header.place is None or "." not in header.place:
        raise TraceError("a stream must name its place")
    stack, _, rest = header.place.partition(".")
    steps: list[Any] = []
    if rest != "start":
        part = Part(name=header.place, layer=0, kind="change", value=values, state=values)
        steps.append(part)
    stream = Stream(name=stack, text="tokens", start=values, steps=steps, rows=header.rows)
    return Trace([Run(streams={stack: stream})])
