"""From the repository's files to pages of the site: the place of each, and its links."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePosixPath

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename

from glassformer.languages import CODES

ROOT = Path(__file__).resolve().parents[2]
GUIDES = (
    "first-hour",
    "workbench",
    "from-formula-to-code",
    "from-looking-to-knowing",
    "transforms",
    "training",
    "statistics-for-engines",
    "engines",
    "capstone",
    "exercise-authors",
    "teaching",
)
TABLES = ("watched-architectures", "sums-of-contributions", "why-and-peers", "claims")
PROJECT = {
    "project/results.md": "benchmarks/RESULTS.md",
    "project/recipes.md": "recipes/README.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changelog.md": "CHANGELOG.md",
}
_LINK = re.compile(
    r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()#\s]+)?(?P<anchor>#[^()\s]+)?\)"
)
_CODE = re.compile("`([^`]+)`")
_CHINESE = "\u2014\u2018-\u201d\u3000-\u303f\u4e00-\u9fff\uff00-\uffef"
_CHINESE_BREAK = re.compile(rf"(?<=[{_CHINESE}])\n *(?=[{_CHINESE}])")
_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One page: its place on the site, and the file it is made from."""

    place: str
    file: Path


def site_pages(code: str) -> list[Page]:
    """Every page that is a file of the repository, in one language where it exists in both."""
    docs = ROOT / "docs"
    pages = [
        Page(f"guides/{name}.md", _in_language(docs / f"{name}.md", code))
        for name in (*GUIDES, *TABLES)
    ]
    pages += [Page(place, _in_language(ROOT / file, code)) for place, file in PROJECT.items()]
    pages += [
        Page(f"learn/{file.name}", file)
        for file in sorted((ROOT / "src/glassformer/course/chapters" / code).glob("*.md"))
    ]
    pages += [
        Page(f"project/decisions/{file.name if file.stem != 'README' else 'index.md'}", file)
        for file in sorted((docs / "decisions").glob("*.md"))
    ]
    return pages


def _in_language(file: Path, code: str) -> Path:
    translated = file.with_name(f"{file.stem}.{code}{file.suffix}")
    return translated if translated.exists() else file


def join_chinese_lines(markdown: str) -> str:
    """Chinese has no spaces between words: a line break in its source must not become one.

    >>> join_chinese_lines("从六个词的句子，\\n到一百万个词元。\\n- 学习")
    '从六个词的句子，到一百万个词元。\\n- 学习'
    """
    parts = _FENCE.split(markdown)
    parts[::2] = [_CHINESE_BREAK.sub("", part) for part in parts[::2]]
    return "".join(parts)


class Links:
    """Links between files of the repository, turned into links between pages of the site."""

    def __init__(self, code: str) -> None:
        self.places = {page.file: page.place for page in site_pages(code)}
        self.others = {
            page.file: f"../{other}/{page.place}"
            for other in CODES
            for page in site_pages(other)
            if page.file not in self.places
        }
        self.sources: set[Path] = set()  # code that some page links to
        self.pictures: dict[str, Path] = {}  # by their places on the site

    def follow(self, markdown: str, page: Page) -> str:
        """The text of a page with every link leading to where its target is on the site."""
        parts = _FENCE.split(markdown)
        for i in range(0, len(parts), 2):  # links in code are code
            parts[i] = _LINK.sub(lambda found: self._follow(found, page), parts[i])
        return "".join(parts)

    def _follow(self, found: re.Match[str], page: Page) -> str:
        text, target, anchor = found["text"], found["target"], found["anchor"] or ""
        if target is None or target.startswith(("http:", "https:", "mailto:")):
            return found[0]
        file = (page.file.parent / target).resolve()
        folder = PurePosixPath(page.place).parent
        if found.string[: found.start()].endswith("!") and file.is_file():
            place = f"pictures/{file.name}"
            if self.pictures.setdefault(place, file) != file:
                raise ValueError(f"Two pictures are called {file.name}; rename one of them.")
            return f"[{text}]({os.path.relpath(place, folder)})"
        if file in self.places:
            return f"[{text}]({os.path.relpath(self.places[file], folder)}{anchor})"
        if file.is_dir():
            return text  # the site has no page for a folder
        if not file.is_file():
            raise FileNotFoundError(f"{page.file} links to {target}, which does not exist.")
        if file not in self.others:
            self.sources.add(file)
        place = self.others.get(file) or source_place(file)
        shown = os.path.relpath(place, folder).removesuffix(".md")
        # Sphinx sees neither the other language nor the lines of code; `broken_links` does.
        return f'<a href="{shown}.html{anchor}">{_CODE.sub(_as_code, escape(text))}</a>'


def _as_code(found: re.Match[str]) -> str:
    return f"<code>{found[1]}</code>"


def source_place(file: Path) -> str:
    """Where the code of a file is shown."""
    return f"source/{file.relative_to(ROOT).as_posix()}.md"


def source_page(file: Path) -> str:
    """A file's code with an anchor on every line: #L9 is line 9."""
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True)
    code = highlight(file.read_text("utf-8"), get_lexer_for_filename(file.name), formatter)
    code = (
        code.replace('name="L-', 'id="L')
        .replace('id="L-', 'id="L')
        .replace('href="#L-', 'href="#L')
    )
    name = file.relative_to(ROOT).as_posix()
    return f"---\norphan: true\n---\n\n# {escape(name)}\n\n```{{raw}} html\n{code}\n```\n"


def all_sources(links: Links) -> Iterator[tuple[str, str]]:
    """A page for every file of code that some page links to."""
    for file in sorted(links.sources):
        yield source_place(file), source_page(file)
