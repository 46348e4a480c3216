"""What the theme leaves out for readers who hear a page: names of landmarks, levels of headings."""

from pathlib import Path
from typing import Any

_LABELS = {
    "en": ("Contents of the site", "Contents of this page", "Search"),
    "zh_CN": ("网站目录", "本页目录", "搜索"),
}


def name_landmarks(html: str, language: str) -> str:
    """A finished page with its two asides told apart and its captions' level given."""
    site, page, search = _LABELS[language]
    for before, after in (
        ('<aside class="sidebar-drawer">', f'<aside class="sidebar-drawer" aria-label="{site}">'),
        ('<aside class="toc-drawer">', f'<aside class="toc-drawer" aria-label="{page}">'),
        ('class="caption" role="heading">', 'class="caption" role="heading" aria-level="2">'),
        ('<div id="search-results">', f'<h1>{search}</h1>\n<div id="search-results">'),
    ):
        html = html.replace(before, after)
    return html


def _finish(app: Any, error: Exception | None) -> None:
    if error is None:
        for file in Path(app.outdir).rglob("*.html"):
            named = name_landmarks(file.read_text("utf-8"), app.config.language)
            file.write_text(named, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
