"""Which layer a site belongs to, read off its name."""

import re


def layer_of(site: str) -> int | None:
    """The layer in the name of a site.

    >>> layer_of("decoder.2.cross"), layer_of("attention")
    (2, None)
    """
    found = re.search(r"\.(\d+)(?=\.|$)", site)
    return None if found is None else int(found[1])
