"""How far what is drawn lies from what the model computed."""

import math

from glassformer.languages import Language
from glassformer.render.sampled_queries import evenly
from glassformer.tracing import Site

MOST_QUERIES = 128  # of a site, evenly spaced: a drawing must not wait for all of a long text


def difference(site: Site) -> float | None:
    """The largest difference of weights · v from the model's output; None where that is unknown.

    Exact for every query that is compared: all of a short text, `MOST_QUERIES` of a long one.
    """
    return None if site.out is None else compared(site).difference_from_output()


def compared(site: Site) -> Site:
    """The site with the queries that are compared: all of them, or as many as are enough."""
    return evenly(site, MOST_QUERIES)


def told_difference(sites: list[Site], language: Language) -> str:
    """A sentence with the largest difference of these sites, or that it is not known."""
    found = [value for site in sites if (value := difference(site)) is not None]
    if len(found) < len(sites) or not found:
        return language.say("look.difference.none")
    largest = math.nan if any(map(math.isnan, found)) else max(found)
    value = f"{largest:.1e}"
    if max(site.shape[2] for site in sites) > MOST_QUERIES:
        return language.say("look.difference.sampled", value=value, n=MOST_QUERIES)
    return language.say("look.difference", value=value)
