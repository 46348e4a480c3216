"""Which head and which token to look at: the ones asked for, else the most telling."""

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.informative_heads import Telling, most_telling
from glassformer.render.layer_numbers import layer_of
from glassformer.render.marks import shown
from glassformer.render.tokens import crosses
from glassformer.tracing import Site, Trace

_MOST_TOKENS = 12  # that a sentence lists


def choose(
    trace: Trace,
    *,
    site: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    sequence: int = 0,
) -> Telling:
    """The site and head asked for, else the most telling, and the cell of it to begin with.

    Attention to another text goes first: it is what one wants to see of a translation.
    """
    if not trace.run.sites:
        why = "".join(f" {name}: {reason}." for name, reason in trace.run.refusals.items())
        raise TraceError(f"A trace must hold a site to be looked at; this run has none.{why}")
    sites = [trace[site]] if site is not None else _of_layer(trace, layer)
    sites = [each for each in sites if crosses(each)] or sites
    having = sites if head is None else [s for s in sites if head in s.head_numbers]
    (having or sites)[0].visible(head, sequence=sequence)  # says so if there is no such head
    return most_telling(trace, having, head=head, sequence=sequence)


def _of_layer(trace: Trace, layer: int | None) -> list[Site]:
    found = [site for site in trace if layer is None or layer_of(site.name) == layer]
    if found:
        return found
    there = sorted({n for site in trace if (n := layer_of(site.name)) is not None})
    listed = f"{there[0]} … {there[-1]}" if there else "not numbered here"
    raise TraceError(f"Layers are {listed}; got layer={layer}.")


def place_of(word: str, names: list[str], language: Language) -> int:
    """Where a token stands that is named by itself or by its place."""
    if word.isdecimal() and int(word) < len(names):
        return int(word)
    bare = [name.strip("␣ ").removeprefix("##") for name in names]
    for spelt in (names, bare):
        if word in spelt:
            return spelt.index(word)
    listed = ", ".join(shown(name, 24) for name in names[:_MOST_TOKENS])
    listed += ", …" if len(names) > _MOST_TOKENS else ""
    raise TraceError(language.say("look.error.word", tokens=listed, got=repr(word)))
