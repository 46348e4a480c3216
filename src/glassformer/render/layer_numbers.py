"""The layer number in a site's name."""

import re


def layer_number(site: str) -> int | None:
    """The layer number in the name of a site; None if it has none.

    >>> layer_number("decoder.2.cross"), layer_number("attention")
    (2, None)
    """
    found = re.search(r"\.(\d+)(?=\.|$)", site)
    return None if found is None else int(found[1])
