"""Build the documentation in both languages: `python docs/site/build.py OUT`, or `make docs`.

Pages are put together in OUT/source, one tree per language, and built by Sphinx into OUT/en and
OUT/zh; nothing is fetched, and a warning is an error.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from chapters import chapter_page
from course_pages import KINDS, course_pages
from doors import add_doors
from glossary import INDEX, PLACE, glossary_page, index_page
from links import broken_links
from page_weight import describe_weights
from pages import ROOT, Links, Page, all_sources, join_chinese_lines, site_pages
from reference import reference_pages
from terms import headed_terms, link_terms, use_anchor, used_terms

from glassformer.languages import CODES, Language
from glassformer.languages.glossary import read_glossary

HERE = Path(__file__).parent
SPHINX = {"en": "en", "zh": "zh_CN"}
OTHER = {  # what the link to the other language needs
    "en": {"other_code": "zh", "other_lang": "zh-Hans", "other_name": "中文"},
    "zh": {"other_code": "en", "other_lang": "en", "other_name": "English"},
}
TITLES = {
    "en": {
        "guides": "Guides",
        "learn": "Chapters",
        "course": "Practice",
        "reference": "API reference",
        "project": "The project",
        "decisions": "Decisions",
    },
    "zh": {
        "guides": "指南",
        "learn": "课文",
        "course": "练一练",
        "reference": "API 参考",
        "project": "关于项目",
        "decisions": "设计决定（英文）",
    },
}


def assemble(code: str, tree: Path) -> None:
    """Write every page of one language into a folder that Sphinx can read."""
    pages = site_pages(code)
    links = Links(code)
    texts = {page.place: links.follow(page.file.read_text("utf-8"), page) for page in pages}
    texts |= _chapter_pages(code, texts)
    texts[PLACE] = glossary_page(code)
    texts |= course_pages(Language(code))
    texts |= reference_pages(code)
    texts |= dict(all_sources(links))
    front = ROOT / "docs" / ("index.md" if code == "en" else f"index.{code}.md")
    text = links.follow(front.read_text("utf-8"), Page("index.md", front))
    texts["index.md"] = add_doors(text, code) + "\n".join(_contents(code, texts))
    if code == "zh":
        texts = {place: join_chinese_lines(text) for place, text in texts.items()}
    for place, picture in links.pictures.items():
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, tree / place)
    for place, text in texts.items():
        file = tree / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _chapter_pages(code: str, texts: dict[str, str]) -> dict[str, str]:
    """The chapters with their terms linked, and the index of terms, which leads back."""
    pages, anchors = {}, {}
    for place, text in texts.items():
        if place.startswith("learn/"):
            joined = join_chinese_lines(text) if code == "zh" else text
            linked = link_terms(joined, code, "../guides/glossary.html")
            anchors[Path(place).name] = used_terms(linked)
            number = int(Path(place).name.partition("-")[0])
            pages[place] = chapter_page(linked.replace("# ", f"# {number}. ", 1), Language(code))
    return pages | {INDEX: index_page(code, _term_uses(), anchors)}


def _term_uses() -> dict[str, dict[str, bool]]:
    """The chapters that use a term, found in the English text, where words have boundaries."""
    uses: dict[str, dict[str, bool]] = {term.en: {} for term in read_glossary().terms}
    for page in site_pages("en"):
        if page.place.startswith("learn/"):
            text = page.file.read_text("utf-8")
            used = used_terms(link_terms(text, "en", ""))
            headed = headed_terms(text, "en")
            for term in read_glossary().terms:
                if use_anchor(term) in used or term.en in headed:
                    uses[term.en][page.file.name] = term.en in headed
    return uses


def _contents(code: str, texts: dict[str, str]) -> list[str]:
    parts = []
    for folder in ("learn", "course", "guides", "reference", "project"):
        inside = [
            place for place in texts if place.startswith(f"{folder}/") and place.count("/") == 1
        ]
        if folder == "course":
            inside = [f"{kind}/index.md" for kind in KINDS]
        if folder == "project":
            inside.append("project/decisions/index.md")
        parts.append(_toctree(inside, TITLES[code][folder]))
    index = "project/decisions/index.md"
    inside = sorted(Path(p).name for p in texts if p.startswith("project/decisions/0"))
    texts[index] += _toctree(inside, None)
    return parts


def _toctree(places: list[str], caption: str | None) -> str:
    title = f":caption: {caption}\n" if caption else ""
    body = "\n".join(places)
    return f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n{title}\n{body}\n```\n"


def build(out: Path) -> None:
    """Both languages, one after the other."""
    shutil.rmtree(out / "source", ignore_errors=True)
    for code in CODES:
        tree = out / "source" / code
        assemble(code, tree)
        command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
        command += ["-c", str(HERE), "-D", f"language={SPHINX[code]}"]
        command += [f"-A{name}={value}" for name, value in OTHER[code].items()]
        command += [str(tree), str(out / code)]
        subprocess.run(command, check=True)
    broken = broken_links(out, CODES)
    if broken:
        sys.exit("These links lead nowhere:\n" + "\n".join(broken))
    for code in CODES:
        sys.stdout.write(describe_weights(out / code) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/site/build.py OUT")
    build(Path(sys.argv[1]))
