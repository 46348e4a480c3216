"""The documentation site: what goes where, what links become, and links that lead nowhere."""

import sys
from pathlib import Path

import pytest

import glassformer
from glassformer.languages import CODES, Language
from glassformer.languages.glossary import read_glossary

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

    page = chapter_page("```math\nx\n```\n\n{{picture many-heads}}\n", Language("en"))
    assert "```{math}" in page and "<figure>" in page and "{{" not in page


def test_links_that_lead_nowhere_are_found(tmp_path):
    from links import broken_links

    (tmp_path / "en").mkdir()
    (tmp_path / "en/a.html").write_text('<a id="top" href="b.html#x">b</a><a href="c.html">c</a>')
    (tmp_path / "en/b.html").write_text(
        '<p id="x"><a href="a.html#bottom">a</a><a href="a.html#top">'
    )
    assert broken_links(tmp_path, ["en"]) == ["en/a.html: c.html", "en/b.html: a.html#bottom"]
