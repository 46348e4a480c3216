"""The book: one file, whole, without a network."""

import re
from functools import cache
from html.parser import HTMLParser

import pytest

from glassformer.languages import CODES, Language
from glassformer.school.learn import Known, chapter_names, read_questions
from glassformer.school.learn.book import book_markup, write_book

VOID = {"meta", "br", "hr", "img", "link", "input"}
KNOWN = Known(lab=["scale"], practice=["attention"])  # others are shown as plain text
in_both = pytest.mark.parametrize("code", CODES)


@cache
def book(code):
    return book_markup(known=KNOWN, language=Language(code))


class Reader(HTMLParser):
    """Checks that what is opened is closed, and gathers what leads somewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.anchors, self.words = [], [], set(), []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attrs)
        self.links += [found[k] for k in ("href", "src", "data", "action", "poster") if k in found]
        if "id" in found:
            self.anchors.add(found["id"])

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style",):
            self.words.append(data)


def read(code):
    reader = Reader()
    reader.feed(book(code))
    reader.close()
    return reader


@in_both
def test_every_element_is_closed_and_every_link_stays_inside(code):
    reader = read(code)
    assert reader.open == []
    assert set(chapter_names()) <= reader.anchors
    inside = [link for link in reader.links if not link.startswith("https://")]
    assert inside and all(link.startswith("#") for link in inside)
    assert {link[1:] for link in inside} <= reader.anchors


@in_both
def test_nothing_is_fetched(code):
    markup = re.sub(r'<a href="https://[^"]+">', "<a>", book(code))  # opened only by a click
    assert not re.search(r"url\(|@import|<script|<link|<img|<iframe|https?:", markup)


@in_both
def test_it_has_every_chapter_and_every_question(code):
    markup = book(code)
    assert markup.count("<section ") == len(chapter_names())
    assert markup.count("<details>") == len(read_questions())
    assert "<math" in markup and "<figure>" in markup and 'class="code"' in markup
    words = "".join(read(code).words)
    assert "{{" not in words and "$" not in words.replace("$1", "") and "```" not in words


def test_each_language_has_its_own_book():
    assert '<html lang="en">' in book("en") and '<html lang="zh-Hans">' in book("zh")
    assert "为什么需要注意力" in book("zh") and "Why attention" in book("en")


def test_it_is_written_whole(tmp_path):
    write_book(tmp_path / "book.html", known=KNOWN, language=Language("en"))
    assert (tmp_path / "book.html").read_text("utf-8") == book("en")
    assert [path.name for path in tmp_path.iterdir()] == ["book.html"]


@pytest.mark.browser
def test_a_browser_draws_it_in_light_and_dark_wide_and_narrow(chromium, tmp_path):
    backgrounds, heard = set(), []
    for code in CODES:
        path = tmp_path / f"{code}.html"
        path.write_text(book(code), "utf-8")
        for scheme, width in (("light", 1280), ("dark", 390)):
            size = {"width": width, "height": 800}
            context = chromium.new_context(viewport=size, color_scheme=scheme, offline=True)
            tab = context.new_page()
            tab.on("console", lambda message: heard.append(message.text))
            tab.on("request", lambda request: heard.append(request.url))
            tab.goto(path.as_uri())
            backgrounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            height = "(all) => Math.min(...all.map((m) => m.getBoundingClientRect().height))"
            assert tab.locator("p math").evaluate_all(height) > 5
            heard.remove(path.as_uri())
            context.close()
    assert len(backgrounds) == 2
    assert heard == []
