"""Checks that every link inside the built site leads to a file, and to an anchor in it."""

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element links to, and by which anchors it can be reached."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)


def broken_links(site: Path, folders: Sequence[str]) -> list[str]:
    """A line for each link that leads nowhere; links to other sites are not followed."""
    files = [file for folder in folders for file in sorted((site / folder).rglob("*.html"))]
    pages = {file.resolve(): _Page(file.read_text("utf-8")) for file in files}
    broken = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchor = unquote(parts.fragment)
            lost = anchor and target in pages and anchor not in pages[target].anchors
            if not target.exists() or lost:
                broken.append(f"{file.relative_to(site.resolve())}: {link}")
    return broken
