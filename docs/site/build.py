"""Build the documentation in both languages: `python docs/site/build.py OUT`, or `make docs`.

Pages are put together in OUT/source, one tree per language, and built by Sphinx into OUT/en and
OUT/zh; nothing is fetched, and a warning is an error.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from chapters import chapter_page
from glossary import PLACE, glossary_page
from links import broken_links
from pages import ROOT, Links, Page, all_sources, join_chinese_lines, site_pages
from reference import reference_pages

from glassformer.languages import CODES, Language

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
        "reference": "API reference",
        "project": "The project",
        "decisions": "Decisions",
    },
    "zh": {
        "guides": "指南",
        "learn": "课文",
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
    for place in [place for place in texts if place.startswith("learn/")]:
        texts[place] = chapter_page(texts[place], Language(code))
    texts[PLACE] = glossary_page(code)
    texts |= reference_pages(code)
    texts |= dict(all_sources(links))
    front = ROOT / "docs" / ("index.md" if code == "en" else f"index.{code}.md")
    texts["index.md"] = links.follow(front.read_text("utf-8"), Page("index.md", front))
    texts["index.md"] += "\n".join(_contents(code, texts))
    if code == "zh":
        texts = {place: join_chinese_lines(text) for place, text in texts.items()}
    shutil.copytree(ROOT / "docs/pictures", tree / "pictures")
    for place, text in texts.items():
        file = tree / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _contents(code: str, texts: dict[str, str]) -> list[str]:
    parts = []
    for folder in ("learn", "guides", "reference", "project"):
        inside = [
            place for place in texts if place.startswith(f"{folder}/") and place.count("/") == 1
        ]
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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/site/build.py OUT")
    build(Path(sys.argv[1]))
