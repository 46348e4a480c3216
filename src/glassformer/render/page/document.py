"""A trace as one page: a single HTML file that needs nothing else, and no network.

The page carries operands, never matrices; the browser computes what is looked at. What is shown at
once lies before the page's script, the operands after it, so that nobody waits for megabytes to be
read before there is something to see. web/ holds the sources of static/page.html.
"""

import html
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.difference import MOST_QUERIES
from glassformer.render.focus import choose
from glassformer.render.heading import model_name, sentence, shorten
from glassformer.render.page.sites import Names, Tensors, site_operands, site_parts
from glassformer.render.page.texts import page_texts
from glassformer.render.sampled_queries import places, thinned
from glassformer.render.signature import PAGE
from glassformer.render.tokens import crosses, text_name
from glassformer.storage import whole_file
from glassformer.tracing import Site, Trace

VERSION = 2
MOST_TOKENS = 2048
MOST_BYTES = 200_000_000  # browsers hold text up to 2^29 characters
_MOST_TITLE = 90  # characters of a text


def draw_page(trace: Trace, path: str | Path, *, language: Language) -> None:
    """Write the page, whole or not at all; it opens in this language and can change it."""
    path = Path(path)
    if path.suffix != ".html":
        raise TraceError(f"A page must be named .html; got {path.name!r}.")
    text = page_html(trace, language)
    with whole_file(path, TraceError, mark=PAGE) as unfinished:
        unfinished.write_text(text, "utf-8")


def page_html(trace: Trace, language: Language) -> str:
    """The page as text."""
    page_size(trace)
    tensors = Tensors()
    shown = [Trace([run], trace.model) for run in trace.runs if run.sites]
    runs = [_run(each, tensors) for each in shown]
    opening = {"run": len(runs) - 1, "sequence": 0, **_opening(shown[-1])}
    data = {
        "version": VERSION,
        "language": language.code,
        "languages": page_texts(),
        "name": model_name(trace),
        "model": _model(trace),
        "opening": opening,
        "runs": runs,
    }
    operands = [
        _element(f"site-{r}-{s}", site_operands(site))
        for r, each in enumerate(shown)
        for s, site in enumerate(each)
    ]
    title = " · ".join(filter(None, (runs[-1]["titles"][0], data["name"], "glassformer")))
    title = title.encode("utf-8", "replace").decode()  # half a character can be read, not written
    before, between, after, end = _template()
    parts = [before, html.escape(title), between, _plain_json(data), after]
    return "".join([*parts, "\n".join([_element("tensors", tensors.packed), *operands]), end])


def _element(name: str, data: Any) -> str:
    return f'<script type="application/json" id="{name}">{_plain_json(data)}</script>'


def _plain_json(data: Any) -> str:
    # In ASCII no line separator is left, and without "<" neither an end tag nor a comment.
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _opening(trace: Trace) -> dict[str, int]:
    """The most telling head and cell, found on evenly spaced queries where there are many."""
    chosen = choose(thinned(trace, lambda _: MOST_QUERIES))
    sites = list(trace)
    number = next(i for i, site in enumerate(sites) if site.name == chosen.site.name)
    L, some = sites[number].shape[2], chosen.site.shape[2]
    return {
        "site": number,
        "head": sites[number].head_numbers.index(chosen.head),
        "query": int(places(L, some)[chosen.row]) if some < L else chosen.row,
        "key": chosen.col,
    }


def page_size(trace: Trace) -> int:
    """About how many bytes the page of a trace takes; what no page can show is told."""
    if not trace.runs or not any(run.sites for run in trace.runs):
        raise TraceError(
            "A page needs a trace with at least one site; got none. Run the model while it is "
            "observed, then draw the page."
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
            f"{size / 1e6:.0f} MB. Record a shorter text, or choose layers: watch(…, layers=…)."
        )
    return size


def _size(site: Site) -> int:
    """About how many characters a site takes: 2 bytes for each value, 4 for each row, in base64."""
    operands = (site.q, site.k, site.v)
    return sum(4 * (2 * t.numel() + 4 * (t.numel() // t.shape[-1])) // 3 for t in operands)


def _model(trace: Trace) -> Any:
    """What is known of the model, numbers that JSON has no words for as words."""
    return json.loads(json.dumps(trace.model, default=str), parse_constant=str)


def _run(trace: Trace, tensors: Tensors) -> dict[str, Any]:
    """One run, alone in its trace."""
    names = Names()
    sites = [site_parts(trace, site, names, tensors) for site in trace]
    sequences = range(max(site.shape[0] for site in trace))
    return {
        "titles": [_title(trace, sequence) for sequence in sequences],
        "crosses": any(crosses(site) for site in trace),
        "names": [list(each) for each in names.lists],
        "sites": sites,
        "refusals": trace.run.refusals,
    }


def _title(trace: Trace, sequence: int) -> str:
    """The texts of a run: the one that is read, and where there is another, the one written."""
    sites = list(trace)
    site = next((site for site in sites if crosses(site)), sites[0])
    names = dict.fromkeys(text_name(text) for text in (site.keys, site.queries))
    found = (sentence(trace, name, sequence) for name in names)
    return " → ".join(shorten(text, _MOST_TITLE) for text in found if text)


@cache
def _template() -> tuple[str, str, str, str]:
    """The built page around its title, its data and its operands."""
    text = files("glassformer.render.page").joinpath("static/page.html").read_text("utf-8")
    before, rest = text.split("@@glassformer-title@@")
    between, rest = rest.split("@@glassformer-page@@")
    after, end = rest.split("@@glassformer-operands@@")
    return before, between, after, end
