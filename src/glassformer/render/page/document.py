"""A trace as a single HTML file that needs no other file and no network.

The page stores operands, never matrices; the browser computes what is viewed. The data for the
first screen precede the page's script and the operands follow it, so that something is visible
before megabytes are parsed. web/ holds the sources of static/page.html.
"""

import json
from pathlib import Path
from typing import Any

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.difference import MOST_QUERIES
from glassformer.render.focus import choose_focus
from glassformer.render.heading import model_name, sentence, shorten
from glassformer.render.page.sites import (
    Names,
    Tensors,
    describe_site,
    measure_sharpness,
    pack_site,
)
from glassformer.render.page.template import check_page, data_element, fill_template, write_html
from glassformer.render.page.texts import TRACE_KEYS, page_texts
from glassformer.render.sampled_queries import even_positions, thin_queries
from glassformer.render.tokens import is_cross, text_name
from glassformer.tracing import Site, Trace

VERSION = 2
MOST_TOKENS = 2048
MOST_BYTES = 200_000_000  # browsers hold text up to 2^29 characters
_MOST_TITLE = 90  # characters of a text


def draw_page(trace: Trace, path: str | Path, *, language: Language) -> None:
    """Write the page atomically; it opens in this language, and the reader can switch."""
    check_page(Path(path))
    write_html(page_html(trace, language), Path(path))


def page_html(trace: Trace, language: Language) -> str:
    """The page as text."""
    page_size(trace)
    tensors = Tensors()
    data = describe_trace(trace, tensors)
    data |= {"language": language.code, "languages": page_texts(TRACE_KEYS)}
    sites = []
    for r, each in enumerate(_shown_runs(trace)):
        for s, site in enumerate(each):
            data["runs"][r]["sites"][s]["sharpness"] = measure_sharpness(site)
            sites.append(data_element(f"site-{r}-{s}", pack_site(site)))
    title = " · ".join(filter(None, (data["runs"][-1]["titles"][0], data["name"], "glassformer")))
    return fill_template(title, data, [data_element("tensors", tensors.packed), *sites])


def describe_trace(trace: Trace, tensors: Tensors) -> dict[str, Any]:
    """All that is shown of a trace before a head is computed; operands are packed separately."""
    shown = _shown_runs(trace)
    return {
        "kind": "trace",
        "version": VERSION,
        "name": model_name(trace),
        "model": _model(trace),
        "opening": {"run": len(shown) - 1, "sequence": 0, **_opening(shown[-1])},
        "runs": [_run(each, tensors) for each in shown],
    }


def _shown_runs(trace: Trace) -> list[Trace]:
    return [Trace([run], trace.model) for run in trace.runs if run.sites]


def _opening(trace: Trace) -> dict[str, int]:
    """The most informative head and cell, searched on evenly spaced queries if there are many."""
    chosen = choose_focus(thin_queries(trace, lambda _: MOST_QUERIES))
    sites = list(trace)
    number = next(i for i, site in enumerate(sites) if site.name == chosen.site.name)
    L, some = sites[number].shape[2], chosen.site.shape[2]
    return {
        "site": number,
        "head": sites[number].head_numbers.index(chosen.head),
        "query": int(even_positions(L, some)[chosen.row]) if some < L else chosen.row,
        "key": chosen.col,
    }


def page_size(trace: Trace) -> int:
    """The approximate size of a page in bytes; raises if no page can show the trace."""
    if not trace.runs or not any(run.sites for run in trace.runs):
        raise TraceError(
            "A page needs a trace with at least one site; got none. Run the model inside gf.watch, "
            "then draw the page."
        )
    sites = [site for run in trace.runs for site in run.sites.values()]
    longest = max(sites, key=lambda site: max(site.shape[2:]))
    if (length := max(longest.shape[2:])) > MOST_TOKENS:
        raise TraceError(
            f"A page shows texts of up to {MOST_TOKENS} tokens; got {length} at {longest.name}. "
            "Record a shorter text, or draw a figure, which pools long ones."
        )
    size = sum(_size(site) for site in sites)
    if size > MOST_BYTES:
        raise TraceError(
            f"A page holds up to {MOST_BYTES / 1e6:.0f} MB; this trace of {len(sites)} sites needs "
            f"{size / 1e6:.0f} MB. Record a shorter text, or select layers: watch(…, layers=…)."
        )
    return size


def _size(site: Site) -> int:
    """The approximate characters of a site: 2 bytes per value and 4 per row, in base64."""
    operands = (site.q, site.k, site.v)
    return sum(4 * (2 * t.numel() + 4 * (t.numel() // t.shape[-1])) // 3 for t in operands)


def _model(trace: Trace) -> Any:
    """The description of the model, with numbers that JSON lacks (NaN, ∞) as strings."""
    return json.loads(json.dumps(trace.model, default=str), parse_constant=str)


def _run(trace: Trace, tensors: Tensors) -> dict[str, Any]:
    """The data of a trace with a single run."""
    names = Names()
    sites = [describe_site(trace, site, names, tensors) for site in trace]
    sequences = range(max(site.shape[0] for site in trace))
    return {
        "titles": [_title(trace, sequence) for sequence in sequences],
        "crosses": any(is_cross(site) for site in trace),
        "names": [list(each) for each in names.lists],
        "sites": sites,
        "refusals": trace.run.refusals,
    }


def _title(trace: Trace, sequence: int) -> str:
    """The texts of a run: the source and, if there is one, the target."""
    sites = list(trace)
    site = next((site for site in sites if is_cross(site)), sites[0])
    names = dict.fromkeys(text_name(text) for text in (site.keys, site.queries))
    found = (sentence(trace, name, sequence) for name in names)
    return " → ".join(shorten(text, _MOST_TITLE) for text in found if text)
