"""Statistics of recorded requests as plain numbers, for replies of a server.

    {"decoder.0.self": {"heads": [0, 1], "rows": [6, 7], "entropy": [[…], […]], "sink": …}}

Lists are by head and then by row; `rows` are positions in the text.
"""

from typing import Any

from glassformer.functional import Prefix
from glassformer.functional.statistics.summary import attention_statistics
from glassformer.tracing.site import Site
from glassformer.tracing.trace import Run

_DIGITS = 6  # significant ones, more than float32 weights deserve
_BY_HEAD = ("heads", "entropy", "sink", "largest", "top_keys", "top_weights")


def report_run(run: Run, top: int) -> dict[str, Any]:
    """The statistics of one run, and what is missing."""
    words = run.texts.get("tokens")
    return {
        "tokens": [] if words is None else words.tokens[0].tolist(),
        "sites": {name: _report_site(site, top) for name, site in run.sites.items()},
        "missing": run.refusals,
    }


def _report_site(site: Site, top: int) -> dict[str, Any]:
    found = attention_statistics(
        site.q,
        site.k,
        **site.options,
        top=min(top, site.shape[3]),
        within=Prefix(1),
        distance=False,
        query_positions=site.query_positions,
    )
    assert found.top is not None
    return {
        "heads": list(site.head_numbers),
        "rows": site.query_positions.tolist(),
        "entropy": _round(found.entropy[0].tolist()),  # nats
        "sink": _round(found.within[0][0].tolist()),  # the weight of the first token
        "largest": _round(found.largest[0].tolist()),  # score of each head
        "top_keys": found.top.indices[0].tolist(),
        "top_weights": _round(found.top.weights[0].tolist()),
    }


def join_reports(parts: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The reports of workers that have different heads, put together run by run."""
    joined = [dict(run) for run in parts[0]]
    for part in parts[1:]:
        for i, (ours, theirs) in enumerate(zip(joined, part, strict=True)):
            sites = dict(ours["sites"])
            for name, site in theirs["sites"].items():
                before = sites.get(name, {})
                sites[name] = site | {key: before.get(key, []) + site[key] for key in _BY_HEAD}
            missing = {**theirs["missing"], **ours["missing"]}
            tokens = ours["tokens"] or theirs["tokens"]  # none where no head was selected
            joined[i] = {"tokens": tokens, "sites": sites, "missing": missing}
    return joined


def _round(values: Any) -> Any:
    if isinstance(values, list):
        return [_round(value) for value in values]
    return float(f"{values:.{_DIGITS}g}")
