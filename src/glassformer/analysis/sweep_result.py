"""What a sweep found: the effect of every patch, and how far gradients are from it."""

import csv
import io
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.drawings import drawing_module
from glassformer.analysis.head_roles import Role
from glassformer.analysis.sweep_places import Over
from glassformer.errors import TraceError
from glassformer.paths import user_path
from glassformer.storage import atomic_file, read_regular

Method = Literal["patch", "gradient", "both"]
FORMAT = "glassformer sweep"
_LEAST = 1e-3  # of the largest effect: below, signs are those of rounding


class Finding(NamedTuple):
    """One cell of a sweep."""

    row: str
    column: str
    value: float  # of the metric
    effect: float
    estimate: float | None  # of the effect by gradients, where both were asked for


class Agreement(NamedTuple):
    """How far the effects that gradients estimate are from those of patches."""

    correlation: float  # of ranks (Spearman)
    signs: float  # the share of cells with an effect in which both have the same sign
    worst: Finding  # the cell that is furthest off

    def __str__(self) -> str:
        estimate = self.worst.estimate
        assert estimate is not None
        return (
            f"gradients against patches: rank correlation {self.correlation:.2f}, same sign in "
            f"{self.signs:.0%} of cells with an effect; furthest off at {self.worst.row} "
            f"{self.worst.column}: {estimate:+.1%} instead of {self.worst.effect:+.1%}"
        )


@dataclass(eq=False, frozen=True, kw_only=True)
class Sweep:
    """What each patch brings back of the answer: 0 nothing, 1 all of it.

    With method="gradient" the values are estimates; with "both" they are those of patches, and the
    estimates stand beside them.
    """

    over: Over
    measured: str  # what the metric is
    rows: list[str]  # sites, heads, parts, borders or senders
    columns: list[str]  # heads, positions, receivers, or the one column "all"
    values: Float[Tensor, "R C"]  # of the metric; NaN where there is no such place
    clean: float
    corrupted: float
    method: Method = "patch"
    estimates: Float[Tensor, "R C"] | None = None  # of the metric by gradients, with "both"
    model: dict[str, Any] = field(default_factory=dict)  # what the trace says of it

    @property
    def effects(self) -> Float[Tensor, "R C"]:
        """The share of the way from the corrupted to the clean value."""
        return (self.values - self.corrupted) / (self.clean - self.corrupted)

    @property
    def estimated_effects(self) -> Float[Tensor, "R C"] | None:
        """The same share by gradients, where both were asked for."""
        if self.estimates is None:
            return None
        return (self.estimates - self.corrupted) / (self.clean - self.corrupted)

    @property
    def errors(self) -> Float[Tensor, "R C"] | None:
        """How far the estimated effect is from that of the patch, cell by cell."""
        estimated = self.estimated_effects
        return None if estimated is None else estimated - self.effects

    @property
    def table(self) -> list[Finding]:
        """All cells that exist, row by row."""
        effects, estimated = self.effects.tolist(), self.estimated_effects
        guessed = None if estimated is None else estimated.tolist()
        return [
            Finding(row, column, value, effects[i][j], None if guessed is None else guessed[i][j])
            for i, row in enumerate(self.rows)
            for j, column in enumerate(self.columns)
            if not math.isnan(value := float(self.values[i, j]))
        ]

    def top(self, n: int = 10) -> list[tuple[str, str, float]]:
        """The largest effects, by size: row, column, effect."""
        effects = self.effects
        sizes = effects.abs().nan_to_num(-1.0).flatten()  # last: places that do not exist
        n_cells = int(effects.isfinite().sum())
        chosen = sizes.argsort(descending=True, stable=True)[: min(n, n_cells)].tolist()
        at = [divmod(i, len(self.columns)) for i in chosen]
        return [(self.rows[i], self.columns[j], float(effects[i, j])) for i, j in at]

    @property
    def agreement(self) -> Agreement | None:
        """How far gradients are from patches, where both were asked for."""
        if self.estimates is None:
            return None
        table = self.table
        patched = torch.tensor([each.effect for each in table], dtype=torch.float64)
        guessed = torch.tensor([each.estimate for each in table], dtype=torch.float64)
        has_effect = patched.abs() >= _LEAST * patched.abs().amax()
        ranks = torch.stack([_rank(patched), _rank(guessed)])
        is_flat = bool((ranks.var(1) == 0).any()) if len(table) > 1 else True
        return Agreement(
            correlation=math.nan if is_flat else float(torch.corrcoef(ranks)[0, 1]),
            signs=float((patched.sign() == guessed.sign())[has_effect].double().mean()),
            worst=table[int((patched - guessed).abs().argmax())],
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them; null where there is no such place."""
        plain: dict[str, Any] = {
            "over": self.over,
            "method": self.method,
            "measured": self.measured,
            "clean": self.clean,
            "corrupted": self.corrupted,
            "rows": self.rows,
            "columns": self.columns,
            "values": as_lists(self.values),
            "effects": as_lists(self.effects),
        }
        if self.estimates is not None:
            plain["estimates"] = as_lists(self.estimates)
        return plain

    def as_file(self) -> dict[str, Any]:
        """Plain values from which it can be made again."""
        plain = self.as_dict()
        del plain["effects"]
        return {**plain, "model": self.model}

    def as_csv(self) -> str:
        """One line for each cell: row, column, value, effect, and the estimate if there is one."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        fields = Finding._fields if self.estimates is not None else Finding._fields[:-1]
        writer.writerow(fields)
        for each in self.table:
            writer.writerow(each[: len(fields)])
        return text.getvalue()

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, completely or not at all."""
        write_file(user_path(path, TraceError), self.as_file())

    @classmethod
    def load(cls, path: str | Path) -> "Sweep":
        """Read what `save` has written."""
        plain = read_file(user_path(path, TraceError))
        if not plain.pop("resume", {"is_finished": True})["is_finished"]:
            raise TraceError(f"{path} is a sweep that is not finished. Continue it by resume=.")
        try:
            for name in ("values", "estimates"):
                if name in plain:
                    plain[name] = as_tensor(plain[name])
            return cls(**plain)
        except (TypeError, ValueError) as error:
            raise TraceError(f"{path} is not a saved sweep: {error}.") from None

    def figure(self, path: str | Path, *, roles: Iterable[Role] = ()) -> None:
        """Write the effects, PNG, SVG or PDF; beside them the `roles` of heads, if given."""
        drawing_module().sweep_figure(self, path, roles=roles)

    def page(self, path: str | Path, *, roles: Iterable[Role] = ()) -> None:
        """Write one HTML file with the effects; it tells the numbers of every cell."""
        drawing_module().sweep_page(self, path, roles=roles)

    def __str__(self) -> str:
        how = {"patch": "patching", "gradient": "estimating by gradients", "both": "patching"}
        lines = [
            f"{how[self.method]} {self.over}: {self.measured} is {self.clean:.3f} in the clean "
            f"run, {self.corrupted:.3f} in the corrupted one"
        ]
        lines += [f"  {effect:+7.1%}  {row}  {column}" for row, column, effect in self.top()]
        if (agreement := self.agreement) is not None:
            lines.append(str(agreement))
        return "\n".join(lines)

    __repr__ = __str__


def as_lists(values: Float[Tensor, "R C"]) -> list[list[float | None]]:
    """Numbers as JSON has them: None for NaN."""
    return [[None if math.isnan(x) else x for x in row] for row in values.tolist()]


def as_tensor(rows: list[list[float | None]]) -> Float[Tensor, "R C"]:
    """The inverse of `as_lists`."""
    plain = [[math.nan if x is None else float(x) for x in row] for row in rows]
    return torch.tensor(plain, dtype=torch.float64)


def write_file(path: Path, plain: dict[str, Any]) -> None:
    """Write plain values; only a file of this format is replaced."""
    with atomic_file(path, TraceError, mark=FORMAT.encode()) as unfinished:
        unfinished.write_text(json.dumps({"format": FORMAT, **plain}), "utf-8")


def read_file(path: Path) -> dict[str, Any]:
    """The plain values of a file that `Sweep.save` or a resumable sweep has written."""
    try:
        plain = json.loads(read_regular(path))
    except OSError as error:
        raise TraceError(f"{path} could not be read: {error.strerror or error}.") from None
    except ValueError:
        plain = None
    if not isinstance(plain, dict) or plain.pop("format", None) != FORMAT:
        raise TraceError(f"{path} is not a saved sweep.")
    return plain


def _rank(values: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    """The rank of each number; equal ones share the mean of theirs."""
    _, at, counts = values.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    return (last - (counts.double() - 1) / 2)[at]
