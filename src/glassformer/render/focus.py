"""The head and token to show: those requested, else the most informative ones."""

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.informative_heads import Focus, find_most_informative
from glassformer.render.layer_numbers import layer_number
from glassformer.render.marks import visible_token
from glassformer.render.tokens import is_cross
from glassformer.tracing import Site, Trace

_MOST_TOKENS = 12  # listed in an error


def choose_focus(
    trace: Trace,
    *,
    site: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    sequence: int = 0,
) -> Focus:
    """The requested site and head, else the most informative ones, and the cell to start with.

    Cross-attention has priority: it is what one wants to see of a translation.
    """
    if not trace.run.sites:
        why = "".join(f" {name}: {reason}." for name, reason in trace.run.refusals.items())
        raise TraceError(f"A trace needs at least one site to show; this run has none.{why}")
    sites = [trace[site]] if site is not None else _sites_of_layer(trace, layer)
    sites = [each for each in sites if is_cross(each)] or sites
    with_head = sites if head is None else [s for s in sites if head in s.head_numbers]
    (with_head or sites)[0].visible(head, sequence=sequence)  # raises if there is no such head
    return find_most_informative(trace, with_head, head=head, sequence=sequence)


def _sites_of_layer(trace: Trace, layer: int | None) -> list[Site]:
    found = [site for site in trace if layer is None or layer_number(site.name) == layer]
    if found:
        return found
    there = sorted({n for site in trace if (n := layer_number(site.name)) is not None})
    listed = f"{there[0]} … {there[-1]}" if there else "not numbered here"
    raise TraceError(f"Layers are {listed}; got layer={layer}.")


def find_token(word: str, names: list[str], language: Language) -> int:
    """The index of a token, given as the token itself or as its index."""
    if word.isdecimal() and int(word) < len(names):
        return int(word)
    bare = [name.strip("␣ ").removeprefix("##") for name in names]
    for spelt in (names, bare):
        if word in spelt:
            return spelt.index(word)
    listed = ", ".join(visible_token(name, 24) for name in names[:_MOST_TOKENS])
    listed += ", …" if len(names) > _MOST_TOKENS else ""
    raise TraceError(language.say("look.error.word", tokens=listed, got=repr(word)))
