"""The page from formula to code, in both languages: it runs, and leads to the right lines."""

import ast
import contextlib
import inspect
import io
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from glassformer.models.presets import FAMILIES

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = DOCS.parent / "src/glassformer"
PAGES = ["from-formula-to-code.md", "from-formula-to-code.zh.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

refresh = SimpleNamespace(**runpy.run_path(str(DOCS / "refresh_lines.py")))
in_both = pytest.mark.parametrize("page", PAGES)


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors are tiny: several threads would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def text_of(page):
    return (DOCS / page).read_text("utf-8")


def blocks(page, kind):
    return [body for language, body in BLOCK.findall(text_of(page)) if language == kind]


def snippets(page):
    """Each snippet with the output below it."""
    return re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL
    )


def links(page):
    return list(refresh.LINK.finditer(text_of(page)))


def sections(page):
    """The numbered sections, each up to the next heading."""
    return re.findall(r"^### (.+?)\n(.+?)(?=^##)", text_of(page), re.MULTILINE | re.DOTALL)


def printed(code, namespace):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "snippet", "exec"), namespace)
    return out.getvalue()


@in_both
def test_every_snippet_has_its_output(page):
    assert len(snippets(page)) == len(blocks(page, "python")) == len(blocks(page, "text"))
    assert len(snippets(page)) > 30
    assert all(shown for _, shown in snippets(page))


@in_both
def test_every_snippet_needs_the_first_alone(page):
    """And prints exactly what the page shows."""
    (first, _), *later = snippets(page)
    for code, shown in later:
        namespace = {}
        printed(first, namespace)
        assert printed(code, namespace) == shown, code


@in_both
def test_the_snippets_run_from_top_to_bottom(page):
    """One after the other, as one who reads the whole page runs them."""
    namespace = {}
    for code, shown in snippets(page):
        assert printed(code, namespace) == shown, code


@in_both
def test_the_letters_have_the_sizes_of_the_table(page):
    namespace = {}
    printed(snippets(page)[0][0], namespace)
    table = dict(re.findall(r"\| ([A-Z]) \| [^|]+ \| (\d+) (?=\|)", text_of(page)))
    assert sorted(table) == sorted("BLSHCDEFV")
    assert {letter: namespace[letter] for letter in table} == {k: int(n) for k, n in table.items()}
    assert len(set(table.values())) == len(table)


@in_both
def test_every_link_leads_to_the_line_that_it_names(page):
    for link in links(page):
        path = (DOCS / link["target"]).resolve()
        assert path == PACKAGE / link["file"], link[0]
        source, line = path.read_text("utf-8"), int(link["line"])
        hint = f"{link[0]}: run python docs/refresh_lines.py"
        assert line == int(link["shown"]) == refresh.line_of(link["piece"], source), hint
        shown = source.split("\n")[line - 1]
        assert (link["piece"] in shown) or (link["piece"].split(".")[-1] in shown), hint
    assert refresh.refreshed(text_of(page), DOCS) == text_of(page)


@in_both
def test_no_line_number_escapes_the_test_above(page):
    text = text_of(page)
    assert text.count("#L") == len(links(page))
    assert len(re.findall(r"\.py:\d", text)) == len(links(page))


@in_both
def test_every_other_link_leads_somewhere(page):
    text = text_of(page)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
    for target in re.findall(r"\]\(([^)]+)\)", refresh.LINK.sub("", text)):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        else:
            assert (DOCS / target).exists(), target


@in_both
def test_every_form_every_layer_and_every_family_is_linked(page):
    wanted = {
        path.relative_to(PACKAGE).as_posix()
        for folder in ("fromscratch", "layers")
        for path in (PACKAGE / folder).glob("*.py")
        if path.name != "__init__.py"
    }
    for family in FAMILIES.values():
        wanted.add(Path(inspect.getfile(family)).relative_to(PACKAGE).as_posix())
    assert wanted - {link["file"] for link in links(page)} == set()


@in_both
def test_every_section_has_a_formula_a_snippet_and_a_link(page):
    found = sections(page)
    assert [title.split(".")[0] for title, _ in found] == [str(n + 1) for n in range(len(found))]
    for title, text in found:
        assert {"", "python", "text"} == {kind for kind, _ in BLOCK.findall(text)}, title
        assert refresh.LINK.search(text), title


@in_both
def test_code_keeps_to_the_width(page):
    lines = [line for code, _ in snippets(page) for line in code.splitlines()]
    assert max(map(len, lines)) <= 100


def test_both_languages_have_the_same_parts():
    english, chinese = PAGES

    def outline(page):
        return re.findall(r"^(#+ |- |```\w*|\|)", text_of(page), re.MULTILINE)

    def led(page):
        return [(link["piece"], link["file"], link["line"]) for link in links(page)]

    assert outline(english) == outline(chinese)
    assert led(english) == led(chinese)
    assert len(sections(english)) == len(sections(chinese))
    for (code, shown), (other, output) in zip(snippets(english), snippets(chinese), strict=True):
        assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(other))  # all but the comments
        assert shown == output
