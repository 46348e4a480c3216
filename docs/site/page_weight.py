"""What a reader's browser loads for a page: the page, its scripts, styles and pictures."""

import gzip
import re
from pathlib import Path

_LOADED = re.compile(r'<(?:script|img|link rel="stylesheet")[^>]*?(?:src|href)="([^"?#]+)')


def page_weight(page: Path) -> tuple[int, int]:
    """Bytes of a page with all it loads, and as most servers send them, compressed by gzip."""
    files = {page}
    for target in _LOADED.findall(page.read_text("utf-8")):
        file = (page.parent / target).resolve()
        if file.is_file():
            files.add(file)
    contents = [file.read_bytes() for file in sorted(files)]
    return sum(map(len, contents)), sum(len(gzip.compress(each)) for each in contents)


def describe_weights(site: Path) -> str:
    """A sentence about one language of the site: its pages, and the chapters among them."""
    pages = sorted(site.rglob("*.html"))
    chapters = sorted((*page_weight(page), page.stem) for page in (site / "learn").glob("*.html"))
    plain, packed, name = chapters[-1]
    middle = chapters[len(chapters) // 2]
    index = (site / "searchindex.js").read_bytes()
    return (
        f"{site.name}: {len(pages)} pages. A chapter loads {middle[0] / 1000:.0f} kB (median; "
        f"{middle[1] / 1000:.0f} kB compressed), at most {plain / 1000:.0f} kB "
        f"({packed / 1000:.0f} kB; {name}). A search loads {len(index) / 1000:.0f} kB more "
        f"({len(gzip.compress(index)) / 1000:.0f} kB)."
    )
