"""The graph of reasons in the browser: clicked down, walked by keys, read aloud."""

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.render.charts.why import tree_of_why
from glassformer.render.page.tree_document import draw_tree_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def found():
    model = gf.load("writer")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.tensor([model.tokenizer.encode("And God said unto")]))
    return gf.why(trace, top=6, depth=3, branches=2)


@pytest.fixture
def open_tree(open_file, found, tmp_path):
    def open_drawn(**options):
        path = tmp_path / "why.html"
        draw_tree_page(lambda language: tree_of_why(found, language), path, language=Language("en"))
        tab = open_file(path, **options)
        tab.locator("[role=treeitem]").first.wait_for()
        return tab

    return open_drawn


def head_of(found) -> int:
    return next(i for i, reason in enumerate(found.reasons) if reason.reasons)


def test_a_click_opens_what_a_number_is_the_sum_of(open_tree, found) -> None:
    tab = open_tree()
    n_reasons = len(found.reasons)
    assert tab.locator("[role=treeitem]").count() == 1 + n_reasons + 2
    assert "the difference is still" in tab.locator(".verdict").inner_text()
    key = f"0.{head_of(found)}"
    head = found.reasons[head_of(found)]
    tab.locator(f"[data-key='{key}']").click()
    assert tab.locator(f"[data-key^='{key}.']").count() == len(head.reasons) + 1
    rows = tab.locator(".detail tbody tr")
    shown = [float(text.replace("−", "-")) for text in rows.locator("td").all_inner_texts()]
    assert sum(shown) == pytest.approx(head.value, abs=0.02)
    tab.locator(f"[data-key='{key}.0']").click()
    assert "×" in tab.locator(".detail").inner_text()  # weight × value = product
    tab.locator(f"[data-key='{key}']").click()
    assert tab.locator(f"[data-key^='{key}.']").count() == 0


def test_edges_are_as_wide_as_their_numbers(open_tree, found) -> None:
    tab = open_tree()
    widths = tab.locator("path").evaluate_all(
        "all => all.map(e => +e.getAttribute('stroke-width'))"
    )
    sizes = [abs(reason.value) for reason in found.reasons]
    ratio = (widths[0] - 0.75) / (widths[1] - 0.75)
    assert ratio == pytest.approx(sizes[0] / sizes[1], rel=0.01)


def test_arrows_walk_the_tree(open_tree, found) -> None:
    tab = open_tree()
    tab.locator("[role=treeitem][tabindex='0']").focus()
    for _ in range(head_of(found) + 1):
        tab.keyboard.press("ArrowDown")
    at = f"0.{head_of(found)}"
    assert tab.evaluate("document.activeElement.dataset.key") == at
    tab.keyboard.press("ArrowRight")
    assert tab.locator(f"[data-key='{at}'][aria-expanded=true]").count() == 1
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.dataset.key") == f"{at}.0"
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate("document.activeElement.dataset.key") == "0"


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_tree, found, scheme, width) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = open_tree(width=width, color_scheme=scheme)
    key = f"0.{head_of(found)}"
    for each in (key, f"{key}.0", f"{key}.0.1"):
        tab.locator(f"[data-key='{each}']").click()
    for language in ("en", "zh"):
        tab.locator("#language").select_option(language)
        violations = axe.run(tab).response["violations"]
        assert [f"{v['id']}: {n['html']}" for v in violations for n in v["nodes"]] == []
