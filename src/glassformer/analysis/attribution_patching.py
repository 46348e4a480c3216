"""Attribution patching: what every patch would do, from one gradient (Nanda 2023).

The metric of the corrupted run is differentiated by what every place computes. To first order, a
patch adds (clean − corrupted) · gradient to it: one forward and one backward pass for all patches,
exact only where the metric is linear in the place. Sums over features; a patch of all positions is
the sum over positions.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.tracing import Patch, Trace
from glassformer.tracing.interventions.attention_edits import site_outputs
from glassformer.tracing.interventions.probes import Probe
from glassformer.tracing.variants import Variants

Key = tuple[str, str]  # a place, and what is patched there: heads, added or state


def estimate_changes(
    variants: Variants,
    clean: Trace,
    patches: Sequence[Patch],
    measure: Callable[[Float[Tensor, "1 L C"]], Float[Tensor, " 1"]],
) -> Float[Tensor, " N"]:
    """How much each patch would add to the metric, to first order, in float64.

    `measure` is the metric of an end of the stream.
    """
    probes = {_key(patch): _probe(patch) for patch in patches}
    gradients = _differentiate(variants, probes, measure)
    products = {
        key: (difference.to(gradients[key].device) * gradients[key].double()).sum(-1).tolist()
        for key, difference in _differences(variants, clean, probes)
    }
    return torch.tensor([_add_up(products[_key(p)], p) for p in patches], dtype=torch.float64)


def _key(patch: Patch) -> Key:
    return patch.place, "heads" if patch.head is not None else patch.what


def _probe(patch: Patch) -> Probe:
    if patch.head is not None:
        return Probe(patch.place, head=slice(None))
    # What a part adds acts through the sum of stream and part alone, so both have one gradient.
    return Probe(patch.place, "state" if patch.what == "state" else "sum")


def _differentiate(
    variants: Variants, probes: dict[Key, Probe], measure: Callable[[Tensor], Tensor]
) -> dict[Key, Tensor]:
    """The gradient of the metric at each probe, of the one sequence: (H, L, E) or (L, C)."""
    start = Probe(f"{variants.stack}.start", "state")  # so that gradients flow from there on
    edits = [start, *(p for p in probes.values() if p.place != start.place)]
    with torch.inference_mode(False), torch.enable_grad():
        end = variants.run_together(edits, 1, is_differentiated=True)
        value = measure(end)
        if not value.requires_grad:
            raise InterventionError(
                "method='gradient' needs a metric that PyTorch can differentiate; this one returns "
                "a number without a gradient. Use method='patch'."
            )
        held = {key: (start if p.place == start.place else p).value for key, p in probes.items()}
        found = torch.autograd.grad(
            value.sum(), [t for t in held.values() if t.requires_grad], allow_unused=True
        )
    given = iter(found)
    gradients = {key: next(given) if t.requires_grad else None for key, t in held.items()}
    for (place, _), gradient in gradients.items():
        if gradient is None:
            raise InterventionError(
                f"No gradient reaches {place}: what attention computes there is out of its sight. "
                "Use method='patch'."
            )
    return {key: gradient[0] for key, gradient in gradients.items() if gradient is not None}


def _differences(
    variants: Variants, clean: Trace, probes: dict[Key, Probe]
) -> Iterator[tuple[Key, Tensor]]:
    """What each place was in the clean run, less what it is in the corrupted one, in float64."""
    streams = [trace.residual(variants.stack) for trace in (clean, variants.trace)]
    for (place, what), probe in probes.items():
        if what == "heads":
            held = probe.value.detach()[0]
            yield (place, what), site_outputs(clean[place])[0].to(held).double() - held.double()
        elif what == "added":
            before, after = (stream.part(place).value[0].double() for stream in streams)
            yield (place, what), before - after
    if any(what == "state" for _, what in probes):
        for (name, before), (_, after) in zip(*(s.states() for s in streams), strict=True):
            if (name, "state") in probes:
                yield (name, "state"), before[0].double() - after[0].double()


def _add_up(products: list, patch: Patch) -> float:
    """The products of one patch: of its head, at its positions."""
    row = products if patch.head is None else products[patch.head]  # type: ignore[index]
    if patch.positions is None:
        return sum(row)
    return sum(row[j] for j in patch.positions)  # type: ignore[union-attr]
