"""The difference between what is drawn and what the model computed."""

import math

from glassformer.languages import Language
from glassformer.render.sampled_queries import select_evenly
from glassformer.tracing import Site

MOST_QUERIES = 128  # per site, evenly spaced, so that drawing a long text stays fast


def output_difference(site: Site) -> float | None:
    """The largest difference of weights · v from the model's output; None if it was not recorded.

    Compares every query of a short text and `MOST_QUERIES` of a long one, each exactly.
    """
    return None if site.out is None else sample_for_comparison(site).difference_from_output()


def sample_for_comparison(site: Site) -> Site:
    """The site with the queries to compare: all of them, or `MOST_QUERIES`, evenly spaced."""
    return select_evenly(site, MOST_QUERIES)


def describe_difference(sites: list[Site], language: Language) -> str:
    """A sentence with the largest difference of these sites, or that it is unknown."""
    found = [value for site in sites if (value := output_difference(site)) is not None]
    if len(found) < len(sites) or not found:
        return language.say("look.difference.none")
    largest = math.nan if any(map(math.isnan, found)) else max(found)
    value = f"{largest:.1e}"
    if max(site.shape[2] for site in sites) > MOST_QUERIES:
        return language.say("look.difference.sampled", value=value, n=MOST_QUERIES)
    return language.say("look.difference", value=value)
