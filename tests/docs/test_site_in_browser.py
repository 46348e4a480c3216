"""A small site of two pages in a browser: search in Chinese, figures that live, nothing for axe."""

import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.languages import Language
from glassformer.school.learn.chapters import chapter_file, chapter_text

pytestmark = [pytest.mark.browser, pytest.mark.plain]
axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")
SITE = Path(__file__).parents[2] / "docs/site"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The chapter on weights, without its links, and the glossary, in Chinese."""
    sys.path.insert(0, str(SITE))
    from chapters import chapter_page
    from glossary import glossary_page
    from pages import join_chinese_lines
    from terms import link_terms

    out = tmp_path_factory.mktemp("site")
    (out / "source/learn").mkdir(parents=True)
    (out / "source/guides").mkdir()
    text = join_chinese_lines(chapter_text(chapter_file("weights"), "zh"))
    head, _, _ = text.partition("\n## ")
    linked = link_terms(head + "\n\n{{picture cat | 图}}\n", "zh", "../guides/glossary.html")
    pages = {
        "learn/02-weights.md": chapter_page(linked, Language("zh")),
        "guides/glossary.md": glossary_page("zh").replace("[术语索引](terms.md)", ""),
        "index.md": "# x\n\n```{toctree}\nlearn/02-weights.md\nguides/glossary.md\n```\n",
    }
    for place, page in pages.items():
        (out / "source" / place).write_text(page, "utf-8")
    sys.path.remove(str(SITE))
    command = [sys.executable, "-m", "sphinx", "-q", "-c", str(SITE), "-D", "language=zh_CN"]
    command += ["-Aother_code=en", "-Aother_lang=en", "-Aother_name=English"]
    subprocess.run([*command, str(out / "source"), str(out / "zh")], check=True)
    return out / "zh"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("掩码", {"术语表"}),
        ("点积", {"术语表", "从点积到权重"}),
        ("余弦 相似度", {"术语表"}),
        ("码掩", set()),
    ],
)
def test_chinese_is_found_without_a_server(chromium, site, query, found):
    tab = chromium.new_context(offline=True).new_page()
    tab.goto(f"{(site / 'search.html').as_uri()}?q={query}")
    tab.locator("#search-results h2").wait_for()
    tab.locator("#search-results .search-summary").filter(has_text="。").wait_for()
    titles = set(tab.locator("#search-results li a").all_inner_texts())
    assert titles >= found and bool(titles) is bool(found)
    tab.context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_chapter_lives_and_can_be_read_by_all(chromium, site, scheme, width):
    size = {"width": width, "height": 800}
    tab = chromium.new_context(viewport=size, color_scheme=scheme, offline=True).new_page()
    heard = []
    tab.on("pageerror", lambda error: heard.append(str(error)))
    tab.goto((site / "learn/02-weights.html").as_uri())
    sum_of_values = tab.locator(".live .sum")
    before = sum_of_values.inner_text()
    tab.locator(".live input[type=number]").first.fill("60")
    assert sum_of_values.inner_text() != before
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator("a.term").count() > 3
    violations = axe_playwright.Axe().run(tab).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == []
    assert heard == []
    tab.context.close()
