"""Touch: what interventions do to a head, to the predictions, and to what the model writes."""

from contextlib import nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import torch

from glassformer.analysis.effects import measure_effect
from glassformer.errors import ConfigError, TraceError
from glassformer.generation.continuation import stream
from glassformer.models import Decoder
from glassformer.render.tokens import token_names
from glassformer.tracing import Site, Trace, change, rerun
from glassformer.tracing.interventions import Changes
from glassformer.workbench.foreign_models import ForeignModel
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory, Reading
from glassformer.workbench.wire.requests import ReadingRequest
from glassformer.workbench.wire.touch import ChangeRequest, RewriteRequest

_TOKENS = 10  # that are compared
_STRONGEST = 8  # keys of the chosen query
_MOVED = 8  # heads
_SIDE = 48  # rows and columns of a map that are sent: of a long text, those around the cell
_WRITTEN = 16  # tokens of a continuation

# Reruns, by the run that they started from: they are forgotten together.
_RERUNS: WeakKeyDictionary[Reading, dict[tuple[str | None, str | None], Trace]] = (
    WeakKeyDictionary()
)
_MOST_RERUNS = 4


def compare_runs(asked: ChangeRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A head and the predictions, without the interventions and with them, on the same tokens."""
    reading = memory.unchanged(asked, progress)
    before, after = reading.trace, _rerun(asked, memory, progress)
    asked = _fit_cell(asked, before[asked.site])
    found: dict[str, Any] = {"positions": [], "position": 0, "tokens": [], "divergence": []}
    found["moved"] = []
    readout = before.residual().readout if before.run.streams else None
    if readout is not None and readout.operations:
        position = asked.position if asked.position is not None else _find_position(reading)
        effect = measure_effect(before, after, position=position, top=_TOKENS, progress=progress)
        found |= {
            "positions": effect.positions,
            "position": effect.position,
            "tokens": [shift._asdict() for shift in effect.tokens],
            "divergence": effect.divergence.tolist(),
        }
        if effect.heads is not None:
            distances = [
                {"site": name, "head": head, "distance": float(distance)}
                for name, heads in effect.heads.heads.items()
                for head, distance in zip(heads, effect.heads.by_head(name), strict=True)
            ]
            found["moved"] = sorted(distances, key=lambda each: -each["distance"])[:_MOVED]
    changed = after.model.get("changes", asked.change or "")
    return {
        "change": changed,
        "site": _describe_site(reading, before[asked.site]),
        "query": asked.query,
        "head": _compare_head(asked, before, after),
        **found,
    }


def rewrite_text(asked: RewriteRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """What the model writes, without the interventions and with them."""
    reading = memory.unchanged(asked, progress)
    if "source" in reading.trace.run.texts and asked.target is None:
        before, after = (_decode(each) for each in (reading, memory.reading(asked, progress)))
        return {"before": before, "after": after}
    if not reading.continues:
        return {"before": None, "after": None}
    changes = memory.changes(asked, progress)
    written = [
        _continue(reading, given, lambda _, n=n: progress(n / 2))
        for n, given in enumerate((None, changes))
    ]
    return {"before": written[0], "after": written[1]}


def _continue(reading: Reading, changes: Changes | None, progress: Progress) -> str:
    """What follows the text, token by token the most probable."""
    source, text = reading.source, reading.asked.text
    if isinstance(source, ForeignModel):
        with nullcontext() if changes is None else change(source.model, changes):
            return source.write(text, _WRITTEN)
    model = reading.model
    assert isinstance(model, Decoder)  # which alone continues a text
    with (
        nullcontext() if changes is None else change(model, changes),
        reading.counting(progress),
    ):
        return "".join(piece[0] for piece in stream(model, [text], max_new_tokens=_WRITTEN))


def _decode(reading: Reading) -> str:
    """The translation of a run."""
    tokens = reading.trace.run.texts["tokens"].tokens[0].tolist()
    return reading.decode(tokens[reading.n_start :])


def _rerun(asked: ReadingRequest, memory: Memory, progress: Progress) -> Trace:
    """The run with the interventions, from where they change it; without any, the run itself."""
    reading = memory.unchanged(asked, progress)
    if asked.change is None:
        return reading.trace
    kept = _RERUNS.setdefault(reading, {})
    key = asked.change, asked.second
    if key not in kept:
        changes = memory.changes(asked, progress)
        assert changes is not None
        with reading.counting(progress):
            found = rerun(reading.trace, changes)
        while len(kept) >= _MOST_RERUNS:
            del kept[next(iter(kept))]
        kept[key] = found
    return kept[key]


def _fit_cell(asked: ChangeRequest, site: Site) -> ChangeRequest:
    """The cell in the unchanged run, whose text may be shorter; a head must be there."""
    _, _, L, S = site.shape
    if asked.head not in site.head_numbers:
        known = ", ".join(map(str, site.head_numbers))
        raise ConfigError(f"{site.name} has heads {known}; got head={asked.head}.")
    cell = {"query": min(asked.query, L - 1), "key": min(asked.key, S - 1)}
    return asked.model_copy(update=cell)


def _describe_site(reading: Reading, site: Site) -> dict[str, Any]:
    """What the switches of a site start from."""
    is_cross = site.queries != site.keys
    return {
        "scale": site.q.shape[-1] ** -0.5 if site.scale is None else float(site.scale),
        "mask": None if site.mask is None else repr(site.mask),
        "has_bias": site.bias is not None,
        "positions": None if is_cross else _name_positions(reading),
        "is_cross": is_cross,
    }


def _name_positions(reading: Reading) -> str:
    """The kind of positions of a model; that of transformers is rotary, or another one."""
    source = reading.source
    if isinstance(source, ForeignModel):
        config = source.model.config
        is_rotary = any(getattr(config, n, None) for n in ("rope_theta", "rope_parameters"))
        return "rotary" if is_rotary else "other"
    return "other" if source is None else source.config.positions.kind


def _compare_head(asked: ChangeRequest, before: Trace, after: Trace) -> dict[str, Any] | None:
    first = before[asked.site]
    try:
        second = after[asked.site]
    except TraceError:  # its block does not run any more
        return None
    if second.shape[2:] != first.shape[2:]:
        return None
    _, _, L, S = first.shape
    rows, keys = _window(asked.query, L), _window(asked.key, S)
    queries, names = token_names(before, first, 0)
    maps = [
        site.weights(asked.head, rows=rows, cols=keys).float().cpu().nan_to_num(0.0)
        for site in (first, second)
    ]
    whole = torch.stack(
        [site.weights(asked.head, rows=[asked.query])[0].float().cpu() for site in (first, second)]
    ).nan_to_num(0.0)
    best = whole.amax(0).topk(min(_STRONGEST, S)).indices.tolist()
    return {
        "rows": queries[rows],
        "keys": names[keys],
        "first_row": rows.start,
        "first_key": keys.start,
        "before": maps[0].tolist(),
        "after": maps[1].tolist(),
        "strongest": [
            {
                "key": key,
                "label": names[key],
                "before": float(whole[0, key]),
                "after": float(whole[1, key]),
            }
            for key in best
        ],
    }


def _window(place: int, n: int) -> slice:
    """The places around one, all of them where they are few."""
    start = max(0, min(place - _SIDE // 2, n - _SIDE))
    return slice(start, min(n, start + _SIDE))


def _find_position(reading: Reading) -> int | None:
    """The first gap, the end of a text, of a translation where the prediction has moved most."""
    if reading.continues:
        return -1
    tokens = reading.trace.run.texts["tokens"].tokens[0]
    gaps = (tokens == reading.gap).nonzero() if reading.gap >= 0 else []
    return int(gaps[0]) if len(gaps) else None
