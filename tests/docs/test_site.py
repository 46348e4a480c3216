"""The documentation site: what goes where, what links become, and links that lead nowhere."""

import re
import sys
from pathlib import Path

import pytest

import glassformer
from glassformer.cli.known_names import exercise_names, experiment_names
from glassformer.languages import CODES, Language
from glassformer.languages.glossary import read_glossary
from glassformer.school.learn import read_questions, topics

SITE = Path(__file__).parents[2] / "docs/site"


@pytest.fixture(scope="module", autouse=True)
def site_modules():
    """The modules of the site import each other by their bare names."""
    sys.path.insert(0, str(SITE))
    yield
    sys.path.remove(str(SITE))


@pytest.mark.parametrize("code", CODES)
def test_every_link_of_every_page_is_followed(code):
    from pages import Links, site_pages

    links = Links(code)
    for page in site_pages(code):
        followed = links.follow(page.file.read_text("utf-8"), page)
        assert "](../src" not in followed
    assert any(file.suffix == ".py" for file in links.sources)


def test_a_link_to_a_file_that_does_not_exist_is_an_error():
    from pages import Links, site_pages

    page = site_pages("en")[0]
    with pytest.raises(FileNotFoundError, match=r"nowhere\.md, which does not exist"):
        Links("en").follow("[x](nowhere.md)", page)


def test_links_in_code_are_left_alone():
    from pages import Links, site_pages

    text = "```python\n[x](nowhere.md)\n```\n"
    assert Links("en").follow(text, site_pages("en")[0]) == text


def test_a_line_break_between_chinese_characters_is_no_space():
    from pages import join_chinese_lines

    text = "从六个词，\n到一百万个。\n\n- 一\n  二 a\n  三\n\n```text\n一\n二\n```\n| 一\n"
    joined = "从六个词，到一百万个。\n\n- 一二 a\n  三\n\n```text\n一\n二\n```\n| 一\n"
    assert join_chinese_lines(text) == joined


def test_lines_of_code_can_be_linked_to():
    from pages import source_page

    html = source_page(SITE / "links.py")
    assert 'id="L1"' in html and 'id="L9"' in html


@pytest.mark.parametrize("code", CODES)
def test_the_reference_has_every_public_name(code):
    from reference import reference_pages

    text = "\n".join(reference_pages(code).values())
    for name in glassformer.__all__:
        assert f":: glassformer.{name}\n" in text


@pytest.mark.parametrize("code", CODES)
def test_the_glossary_has_every_term_in_both_languages(code):
    from glossary import glossary_page

    page = glossary_page(code)
    for term in read_glossary().terms:
        assert term.en in page and term.zh in page
        assert (term.about_en if code == "en" else term.about_zh) in page
    assert page.count("\n## ") == len(read_glossary().groups)


def test_a_chapter_is_filled_in():
    from chapters import chapter_page

    text = "```math\nx\n```\n\n{{picture masks}}\n\n{{practice attention scaling}}\n\n{{lab scale}}"
    page = chapter_page(text, Language("en"))
    assert "```{math}" in page and "<figure>" in page and "{{" not in page
    assert 'href="../practice/scaling.html"' in page and 'href="../lab/scale.html"' in page
    assert "<script" not in page  # nothing to change in these figures


@pytest.mark.parametrize("code", CODES)
def test_a_figure_that_can_be_changed_brings_its_numbers_and_texts(code):
    import json

    from chapters import chapter_page

    page = chapter_page("{{picture cat | x}}\n", Language(code))
    data = page.split('<script type="application/json">')[1].split("</script>")[0]
    content = json.loads(data)
    assert content["picture"]["kind"] == "steps" and content["language"] == code
    assert page.count("figures.js") == 1 and '<table class="numbers">' in page
    components = SITE.parents[1] / "web/src/bench/rooms/learn"
    names = ("Album", "Choices", "Flow", "Merges")
    figures = (*(f"{name}Figure" for name in names), "StepsTable", "Drawing")
    sources = "".join((components / f"{name}.svelte").read_text("utf-8") for name in figures)
    assert set(content["texts"]) == set(re.findall(r"say\('([a-z.]+)'", sources))


@pytest.mark.parametrize("code", CODES)
def test_the_first_use_of_a_term_leads_to_the_glossary(code):
    from glossary import glossary_page
    from terms import link_terms

    text = {
        "en": "# Masks\n\nA `mask`, $mask$ and [masks](x.md): causal masks hide; a mask does.",
        "zh": "# 掩码\n\n`掩码`，$掩码$，[掩码](x.md)：因果掩码和掩码，开头的数值。",
    }[code]
    linked = link_terms(text, code, "g.html")
    anchors = re.findall(r'href="g\.html#([a-z-]+)">([^<]+)<', linked)
    assert [anchor for anchor, _ in anchors] == ["term-causal-mask", "term-mask"]
    page = glossary_page(code)
    assert all(f'id="{anchor}"' in page for anchor, _ in anchors)
    assert re.sub(r"<[^>]+>", "", linked) == text


def test_the_index_has_letters_numbers_and_pinyin():
    from glossary import index_page, sort_key

    uses = {"mask": {"05-masks.md": True}, "entropy": {"05-masks.md": False, "13-seeing.md": False}}
    anchors = {"05-masks.md": {"use-mask"}, "13-seeing.md": set()}
    page = index_page("zh", uses, anchors)
    assert page.index("## S") < page.index("熵") < page.index("## Y") < page.index("掩码")
    assert '**<a href="../learn/05-masks.html#use-mask">5</a>**' in page
    assert '<a href="../learn/13-seeing.html">13</a>' in page
    assert [sort_key(word)[0] for word in ("重复惩罚", "嵌入", "ALiBi")] == ["C", "Q", "A"]


@pytest.mark.parametrize("code", CODES)
def test_exercises_experiments_and_questions_have_pages(code):
    from course_pages import course_pages

    pages = course_pages(Language(code))
    known = [f"practice/{name}.md" for name in exercise_names()]
    known += [f"lab/{name}.md" for name in experiment_names()]
    known += [f"quiz/{name}.md" for name in topics()]
    assert set(known) <= set(pages) and len(pages) == len(known) + 3
    assert "../learn/05-masks.md" in pages["practice/causal_mask.md"]
    questions = [q for q in read_questions() if q.topic == "masks"]
    assert all(" ".join(q.ask[code].split()) in pages["quiz/masks.md"] for q in questions)


@pytest.mark.parametrize("code", CODES)
def test_every_door_leads_to_a_page(code):
    from course_pages import KINDS
    from doors import DOORS, add_doors
    from glossary import INDEX
    from pages import site_pages
    from reference import GROUPS

    places = {page.place for page in site_pages(code)} | {INDEX}
    places |= {f"{kind}/index.md" for kind in KINDS} | {f"reference/{key}.md" for key in GROUPS}
    assert len(DOORS[code]) == 3
    assert {place for _, _, links in DOORS[code] for _, place in links} <= places
    front = add_doors("# x\n\ntext\n\n![a](b.svg)\n\n- c\n", code)
    assert front.index("text") < front.index("<section>") < front.index("![a](b.svg)\n\n- c\n")


def test_chinese_is_searched_by_pairs_of_characters():
    from search import PairSearch

    words = PairSearch({}).split("注意力的 softmax，掩码。")
    assert {"注意", "意力", "掩码", "码", "softmax"} <= set(words) and "softmax，" not in words
    assert "，掩" not in words
    keeps = PairSearch({}).word_filter
    assert keeps("码") and keeps("掩码") and not keeps("x")


def test_pictures_are_copied_once_and_found_from_every_folder():
    from pages import Links, Page

    links, docs = Links("en"), SITE.parent
    page = Page("guides/x.md", docs / "x.md")
    assert links.follow("![a](pictures/lens.svg)", page) == "![a](../pictures/lens.svg)"
    assert links.pictures == {"pictures/lens.svg": docs / "pictures/lens.svg"}


def test_the_weight_of_a_page_counts_what_it_loads(tmp_path):
    from page_weight import page_weight

    (tmp_path / "a.js").write_text("x" * 1000)
    page = tmp_path / "a.html"
    page.write_text('<script src="a.js?v=1"></script><a href="b.js">b</a>')
    assert page_weight(page)[0] == 1000 + len(page.read_text())


def test_links_that_lead_nowhere_are_found(tmp_path):
    from links import broken_links

    (tmp_path / "en").mkdir()
    (tmp_path / "en/a.html").write_text('<a id="top" href="b.html#x">b</a><a href="c.html">c</a>')
    (tmp_path / "en/b.html").write_text(
        '<p id="x"><a href="a.html#bottom">a</a><a href="a.html#top">'
    )
    assert broken_links(tmp_path, ["en"]) == ["en/a.html: c.html", "en/b.html: a.html#bottom"]
