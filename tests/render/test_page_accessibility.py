"""axe-core finds nothing to complain of, whatever a page shows, and however."""

import pytest
import torch

import glassformer as gf
from glassformer.tracing import Run, Site, Trace, TracedText
from render.conftest import settled
from render.page_traces import decoder, translator

pytestmark = pytest.mark.browser
axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")
VIEWS = ("view=heat", "view=lines", "view=statistics", "text=1&view=heat", "text=1&view=statistics")


def grouped(n: int = 40, heads: int = 32) -> Trace:
    """Grouped-query attention over more tokens than a table shows whole, and a refusal."""
    q, k = 2 * torch.randn(1, heads, n, 4), torch.randn(1, heads // 4, n, 4)
    sites = {
        f"decoder.{layer}.self": Site(name=f"decoder.{layer}.self", q=q, k=k, v=k, mask=gf.Causal())
        for layer in range(2)
    }
    words = TracedText(torch.arange(n)[None] + 3, [[f"␣word{i}" for i in range(n)]])
    refusals = {"decoder.2.self": "its weights are computed elsewhere"}
    return Trace([Run(sites, {"tokens": words}, refusals)], {"name": "grouped"})


def complaints(tab) -> list[str]:
    """What axe finds, with where it found it."""
    found = axe_playwright.Axe().run(tab).response["violations"]
    return [f"{v['id']}: {node['target']} {node['html']}" for v in found for node in v["nodes"]]


# Every pair of width, scheme and language, not every three of them.
@pytest.mark.parametrize(
    ("scheme", "width", "language"),
    [("light", 1280, "en"), ("light", 360, "zh"), ("dark", 1280, "zh"), ("dark", 360, "en")],
)
def test_every_view(open_page, scheme: str, width: int, language: str) -> None:
    tab = open_page(grouped(), width=width, color_scheme=scheme)
    for view in VIEWS:
        tab.evaluate("(fragment) => { location.hash = fragment }", f"{view}&lang={language}")
        settled(tab)
        tab.locator(f"html[lang={'zh-Hans' if language == 'zh' else 'en'}]").wait_for()
        assert (view, complaints(tab)) == (view, [])


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opened_dialogs_and_choices(open_page, scheme: str, width: int) -> None:
    tab = open_page(translator(), width=width, color_scheme=scheme)
    tab.locator(".legend summary").click()
    tab.locator("#scale").select_option("row")
    tab.locator("#first").check()
    settled(tab)
    assert complaints(tab) == []
    tab.get_by_role("button", name="Keyboard shortcuts").click()
    assert complaints(tab) == []


@pytest.mark.parametrize("view", VIEWS)
def test_colours_of_the_system(open_page, view: str) -> None:
    tab = open_page(grouped(), fragment=f"#{view}", forced_colors="active")
    assert complaints(tab) == []


def test_axe_would_complain(open_page) -> None:
    tab = open_page(decoder(4))
    tab.evaluate("document.querySelector('#site').removeAttribute('id')")
    tab.evaluate(
        "document.querySelector('.pickers select').closest('label').replaceWith("
        "document.querySelector('.pickers select'))"
    )
    assert any(each.startswith("select-name") for each in complaints(tab))
