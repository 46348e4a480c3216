"""The matrices of attention, found by probing: no architecture is known by name.

A model runs on sequences of one token. At the first position rotary angles are zero. What each
attention module reads is replaced by zero and by the unit vectors: its queries, keys and values are
then their biases and the columns of their matrices. Random vectors, also large ones, prove that
there is nothing else; an operand that is not linear is refused.

Norms inside attention (of queries and keys, of latents) are replaced by their linear part: the size
that they divide by is left out, and the site says so. A norm that would divide only a part of an
operand cannot be left out; that operand is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.analysis.reading import Reading, is_state
from glassformer.analysis.site_weights import linear_part
from glassformer.analysis.token_model import TokenModel
from glassformer.tracing.context import watch
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.site import Site

_UNIT = 64.0  # the length of a probe: biases are lost in rounding; a power of two adds none
_LARGE = 1024.0
_AT_ONCE = 256  # sequences of one pass
OPERANDS = {"q": "queries", "k": "keys", "v": "values"}


class Operand(NamedTuple):
    """One of q, k, v: a matrix and a bias for each of its heads."""

    weight: Float[Tensor, "H D C"]
    bias: Float[Tensor, "H D"]


@dataclass(eq=False)
class Probed:
    """What the probes say of one site."""

    operands: dict[str, Operand]
    refusals: dict[str, str]
    frozen: list[str]
    is_rotary: bool
    scale: float


class Probes:
    """Runs a model with other vectors in the place of what its attention reads."""

    def __init__(self, model: TokenModel, readings: dict[str, Reading]) -> None:
        self.model, self.readings = model, readings
        self.size_factor = 1.0  # of every norm inside attention
        self.widths = sorted({w for each in readings.values() for w in each.widths})

    def run(self) -> dict[str, Probed]:
        """The matrices of every site that answers each probe with a query, a key and a value."""
        n = max(self.widths) + 1
        rows: dict[str, dict[str, list[Tensor]]] = {name: {} for name in self.readings}
        for start in range(0, n, _AT_ONCE):
            probes = {w: _unit_rows(w, start, min(start + _AT_ONCE, n)) for w in self.widths}
            for name, site in self._pass(probes, L=1).items():
                for operand in OPERANDS:
                    rows[name].setdefault(operand, []).append(getattr(site, operand)[:, :, -1])
        proof = self._prove()
        found = {}
        for name, reading in self.readings.items():
            passes = rows[name].get("q", [])
            if sum(map(len, passes)) < n or not all(name in each for each in proof):
                continue
            operands = {
                operand: _differences(torch.cat(rows[name][operand]), width)
                for operand, width in zip("qkv", reading.operand_widths, strict=True)
            }
            found[name] = self._judge(name, operands, reading, *(each[name] for each in proof))
        return found

    def _prove(self) -> tuple[dict[str, Site], dict[str, Site]]:
        """Random vectors at two positions; and again, with the norms inside attention doubled."""
        generator = torch.Generator().manual_seed(0)
        drawn = {w: torch.randn(2, w, generator=generator) for w in self.widths}
        self.random = {w: torch.cat([torch.zeros(1, w), x, _LARGE * x]) for w, x in drawn.items()}
        sites = []
        for self.size_factor in (2.0, 1.0):
            sites.append(self._pass({w: x[:, None] for w, x in self.random.items()}, L=2))
        return sites[1], sites[0]

    def _pass(self, probes: dict[int, Tensor], L: int) -> dict[str, Site]:
        """The sites of one run that have a query for each probe and position, by name."""
        n = len(next(iter(probes.values())))
        tokens = self.model.draw(1, 1).expand(n, L)
        with self._replaced(probes), watch(self.model.model) as trace:
            self.model(tokens)
        sites = {name: trace.run.sites.get(name) for name in self.readings}
        return {
            name: site
            for name, site in sites.items()
            if site is not None and (site.shape[0], site.shape[2]) == (n, L)
        }

    @contextmanager
    def _replaced(self, probes: dict[int, Tensor]) -> Iterator[None]:
        with ExitStack() as stack:
            for module, place in self.model.places.items():
                replace = _replacing(probes, 2 if place.is_cross else 1)
                handle = module.register_forward_pre_hook(replace, with_kwargs=True)
                stack.callback(handle.remove)
            norms = {m: form for each in self.readings.values() for m, form in each.norms.items()}
            for module, form in norms.items():
                hook = module.register_forward_hook(partial(self._leave_out_size, form))
                stack.callback(hook.remove)
            yield

    def _leave_out_size(
        self, form: NormForm, _module: nn.Module, args: tuple, _out: Tensor
    ) -> Tensor:
        y = self.size_factor * linear_part(form, args[0])
        return y if form.bias is None else y + form.bias.to(y)

    def _judge(
        self, name: str, operands: dict[str, Operand], reading: Reading, site: Site, doubled: Site
    ) -> Probed:
        refusals, frozen = {}, []
        for (operand, (weight, bias)), width in zip(
            operands.items(), reading.operand_widths, strict=True
        ):
            word = OPERANDS[operand]
            x = self.random[width].to(weight)
            got = getattr(site, operand)[:, :, -site.shape[2]].double()
            bound = _bound(weight, bias, x) * torch.finfo(getattr(site, operand).dtype).eps
            apart = (torch.einsum("hdc,bc->bhd", weight, x) + bias - got).abs()
            if not bool((apart <= bound).all()):
                refusals[operand] = (
                    f"The {word} of {name} are no linear function of what it reads: "
                    f"they differ by {float((apart / bound.clamp(min=1e-300)).max()):.1g} times "
                    "what rounding explains."
                )
                continue
            other = getattr(doubled, operand)[:, :, -site.shape[2]].double()
            change, as_it_is = other - other[:1], got - got[:1]
            ratio = float((change * as_it_is).sum() / as_it_is.square().sum().clamp(min=1e-300))
            if not bool(((change - ratio * as_it_is).abs() <= 4 * bound).all()):
                refusals[operand] = (
                    f"A norm inside {name} divides only a part of its {word}, so that it cannot be "
                    "left out of their matrix."
                )
            elif abs(ratio - 1) > 1e-3:
                frozen.append(f"the size that the {word} are divided by is left out")
        scale = site.scale if site.scale is not None else site.q.shape[-1] ** -0.5
        return Probed(operands, refusals, frozen, _is_turned(site), float(scale))


def _replacing(probes: dict[int, Tensor], n: int) -> Callable[..., Any]:
    """A hook that replaces the first n arguments that are states of a stream."""

    def replace(_module: nn.Module, args: tuple, options: dict[str, Any]) -> Any:
        left = n

        def fit(value: Any) -> Any:
            nonlocal left
            if not left or not is_state(value):
                return value
            left -= 1
            known = probes.get(value.shape[-1])
            if known is None or len(known) != len(value):
                return value
            return known.to(value).expand(value.shape).contiguous()  # some modules view it

        args = tuple(fit(each) for each in args)
        return args, {name: fit(each) for name, each in options.items()}

    return replace


def _unit_rows(width: int, start: int, stop: int) -> Float[Tensor, "N 1 C"]:
    """Rows of [0; unit · identity; 0 …]."""
    rows = torch.zeros(stop - start, width)
    for i in range(max(start, 1), min(stop, width + 1)):
        rows[i - start, i - 1] = _UNIT
    return rows[:, None]


def _differences(rows: Float[Tensor, "N H D"], width: int) -> Operand:
    rows = rows[: width + 1].double()
    return Operand(((rows[1:] - rows[:1]) / _UNIT).permute(1, 2, 0).contiguous(), rows[0])


def _bound(weight: Tensor, bias: Tensor, x: Tensor) -> Float[Tensor, "B H D"]:
    """How far a product in the model's precision may be off, in units of its last place.

    The probes themselves were rounded: by a bias, the columns are off by its share in a probe.
    """
    size = torch.einsum("hdc,bc->bhd", weight.abs(), x.abs())
    length = 1 + x.abs().sum(-1)[:, None, None] / _UNIT
    return 8 * (size + bias.abs() * length) + 1e-30


def _is_turned(site: Site) -> bool:
    """Whether rotary positions turn the queries: vectors alike at two positions differ there."""
    first, second = site.q[:, :, 0].double(), site.q[:, :, 1].double()
    return bool((first - second).abs().amax() > 1e-2 * first.abs().amax())
