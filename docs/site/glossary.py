"""The glossary as a page, and an index of its terms that leads into the chapters."""

from collections.abc import Mapping
from itertools import groupby

from terms import term_anchor, use_anchor

from glassformer.languages.glossary import Term, read_glossary

PLACE = "guides/glossary.md"
INDEX = "guides/terms.md"
_TITLE = {"en": "Glossary", "zh": "术语表"}
_INTRO = {
    "en": "The terms used in the program, the chapters and this site, in English and Chinese. "
    "[The index](terms.md) says which chapters use them.",
    "zh": "程序、课文和本网站使用的术语，中英对照。[术语索引](terms.md)列出各术语出现在哪些章。",
}
_COLUMNS = {"en": "| Term | Chinese | Meaning |", "zh": "| 术语 | 英文 | 含义 |"}
_INDEX_TITLE = {"en": "Index of terms", "zh": "术语索引"}
_INDEX_INTRO = {
    "en": "Each number leads to the first use in that chapter; bold numbers are chapters that "
    "have the term in a heading. The term itself leads to [the glossary](glossary.md).",
    "zh": "按拼音排列。数字是章号，指向该术语在那一章首次出现之处；"
    "粗体表示该章的标题里有这个术语。术语本身链接到[术语表](glossary.md)。",
}
# GB 2312 has its common characters in the order of their readings; the first of each letter.
_PINYIN = dict(
    zip("ABCDEFGHJKLMNOPQRSTWXYZ", "啊芭擦搭蛾发噶哈击喀垃妈拿哦啪期然撒塌挖昔压匝", strict=True)
)
# Where that order fails, characters of the same reading: one that is not common, one with two.
_SAME_READING = (("熵", "商"), ("重复", "虫复"))

Uses = Mapping[str, Mapping[str, bool]]
"""English name of a term → file of a chapter → whether a heading has it."""


def glossary_page(code: str) -> str:
    """Every term in one language, with the other language beside it."""
    parts = [f"# {_TITLE[code]}", _INTRO[code]]
    for titles, terms in read_glossary().groups.items():
        parts.append(f"## {titles[0] if code == 'en' else titles[1]}")
        parts.append("\n".join([_COLUMNS[code], "|---|---|---|", *(_row(t, code) for t in terms)]))
    return "\n\n".join(parts) + "\n"


def index_page(code: str, uses: Uses, anchors: Mapping[str, set[str]]) -> str:
    """The terms by letter, each with the chapters that use it.

    `anchors` has the places of first uses in each chapter of this language.
    """
    parts = [f"# {_INDEX_TITLE[code]}", _INDEX_INTRO[code]]
    terms = sorted(
        (term for term in read_glossary().terms if uses.get(term.en)),
        key=lambda term: sort_key(_name(term, code)),
    )
    for letter, group in groupby(terms, key=lambda term: sort_key(_name(term, code))[0]):
        parts.append(f"## {letter}")
        parts.append("\n".join(_entry(term, code, uses[term.en], anchors) for term in group))
    return "\n\n".join(parts) + "\n"


def sort_key(name: str) -> tuple[str, bytes]:
    """The letter under which a name is listed, and its place there: by pinyin where it is Chinese.

    >>> [sort_key(name)[0] for name in ("掩码", "softmax", "注意力", "采样")]
    ['Y', 'S', 'Z', 'C']
    """
    for written, read in _SAME_READING:
        name = name.replace(written, read)
    place = name.lower().encode("gb2312", "replace")
    if name[0].isascii():
        return name[0].upper(), place
    letters = [c for c, first in _PINYIN.items() if first.encode("gb2312") <= place]
    return letters[-1], place


def _name(term: Term, code: str) -> str:
    return term.en if code == "en" else term.zh


def _entry(
    term: Term, code: str, chapters: Mapping[str, bool], anchors: Mapping[str, set[str]]
) -> str:
    links = []
    for file, is_headed in chapters.items():
        number = str(int(file.partition("-")[0]))
        place = use_anchor(term)
        target = f"#{place}" if place in anchors[file] else ""
        link = f'<a href="../learn/{file.removesuffix(".md")}.html{target}">{number}</a>'
        links.append(f"**{link}**" if is_headed else link)
    name = f'<a href="glossary.html#{term_anchor(term)}">{_name(term, code)}</a>'
    other = f" ({term.zh})" if code == "en" else f"（{term.en}）"
    return f"- {name}{other if term.en != term.zh else ''} {', '.join(links)}"


def _row(term: Term, code: str) -> str:
    anchor = f'<span id="{term_anchor(term)}"></span>'
    if code == "en":
        return f"| {anchor}**{term.en}** | {term.zh} | {term.about_en} |"
    return f"| {anchor}**{term.zh}** | {term.en} | {term.about_zh} |"
