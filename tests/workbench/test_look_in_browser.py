"""The first screen and Look: a sentence, its path, the library's numbers; Back, reload, a link."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.tracing import Run, Site, Trace, TracedText
from workbench.browsing import listen
from workbench.served import TOKEN, Server, serving

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser


@pytest.fixture
def tab(chromium: Any, server: Server) -> Iterator[Any]:
    """A tab whose faults, and requests to anybody else, fail the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, locale="en-GB")
    page = context.new_page()
    faults = listen(page, server)
    yield page
    assert not faults
    context.close()


def visit(tab: Any, server: Server, place: str = "") -> None:
    tab.goto(f"http://{server.host}/#token={TOKEN}&{place}")
    tab.locator("#result").wait_for()


def weight(tab: Any) -> float:
    return float(tab.locator("#result").get_attribute("data-value"))


def settle(tab: Any) -> None:
    expect(tab.locator("#view-panel")).to_have_attribute("aria-busy", "false")


def test_the_first_screen_translates_and_says_what_it_looks_at(tab: Any, server: Server) -> None:
    visit(tab, server)
    model = gf.load("translator")
    with gf.watch(model) as trace:
        said = gf.translate(model, "The cat sat on the mat.", to="fr")
    expect(tab.locator(".outcome strong")).to_have_text(said)
    told = tab.locator(".insight").inner_text()
    place = tab.locator(".insight button").inner_text()
    name, _, head = place.partition(" · head ")
    keys, queries = trace.labels("source"), trace.labels("tokens")
    weights = trace[name].weights(head=int(head))
    query, key = (int(tab.locator(f"#{which}").input_value()) for which in ("query", "key"))
    for label in (queries[query], keys[key]):
        assert label.removeprefix("␣") in told
    assert f"{100 * float(weights[query, key]):.1f} %" in told
    assert weight(tab) == pytest.approx(float(weights[query, key]), abs=1e-4)
    assert "token=" not in tab.url  # it is for this browser, not for links


def test_the_path_back_reload_and_a_link(tab: Any, server: Server) -> None:
    visit(tab, server, "model=writer")
    model = gf.load("writer")
    tab.locator("#sentence").fill("She opened the door and she")
    tab.keyboard.press("Enter")
    tab.locator("ol >> text=She opened the door and she").wait_for()
    settle(tab)
    tab.locator("#site").select_option("decoder.2.self")
    tab.locator("#head").select_option("3")
    tab.locator("#query").select_option("5")
    tab.locator("#key").select_option("2")
    settle(tab)
    with gf.watch(model) as trace:
        gf.generate(model, "She opened the door and she", max_new_tokens=1, temperature=0)
    expected = float(trace["decoder.2.self"].weights(head=3)[5, 2])
    expect(tab.locator("#view-title")).to_contain_text("decoder.2.self")
    assert weight(tab) == pytest.approx(expected, abs=1e-4)
    expect(tab).to_have_url(re.compile("query=5"))
    link = tab.url
    tab.reload()
    tab.locator("#result").wait_for()
    settle(tab)
    assert weight(tab) == pytest.approx(expected, abs=1e-4)
    tab.locator("#head").select_option("0")
    expect(tab.locator("#view-title")).to_contain_text("head 0")
    tab.go_back()
    expect(tab.locator("#view-title")).to_contain_text("head 3")
    other = tab.context.new_page()  # a link, opened in another tab of this browser
    other.goto(link)
    other.locator("#result").wait_for()
    settle(other)
    assert weight(other) == pytest.approx(expected, abs=1e-4)


def test_maps_of_all_heads_can_be_ordered_and_chosen(tab: Any, server: Server) -> None:
    visit(tab, server, "model=writer")
    model = gf.load("writer")
    maps = tab.locator("[data-map]")
    expect(maps).to_have_count(model.config.n_layers * model.config.n_heads)
    tab.locator("#order").select_option("sharpness")
    expect(tab.locator(".item .quiet").first).not_to_have_text("–")
    shown = [float(text) for text in tab.locator(".item .quiet").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    maps.first.click()
    settle(tab)
    name = maps.first.get_attribute("aria-label")
    expect(tab.locator("#view-title")).to_contain_text(name.split()[0])
    tab.locator("#order").select_option("effect")
    expect(tab.locator(".item .quiet").first).not_to_have_text("–", timeout=30_000)
    effects = [float(text) for text in tab.locator(".item .quiet").all_inner_texts()]
    assert effects == sorted(effects, reverse=True) and effects[0] > 0


def test_mistakes_are_sentences_and_nothing_is_lost(tab: Any, server: Server) -> None:
    visit(tab, server, "model=writer")
    shown = weight(tab)
    tab.evaluate("location.hash += '&change=ablate(decoder.99.self)'")
    expect(tab.locator("[role=alert]")).to_contain_text("decoder.99")
    assert weight(tab) == shown  # what was there stays
    tab.evaluate("location.hash = 'model=writer'")
    expect(tab.locator("[role=alert]")).to_have_count(0)


def test_a_text_is_never_markup(tab: Any, server: Server) -> None:
    visit(tab, server, "model=writer")
    tab.locator("#sentence").fill("<img src=x onerror=alert(1)> <script>alert(2)</script>")
    tab.keyboard.press("Enter")
    tab.locator("ol >> text=<img src=x").wait_for()
    assert tab.locator("#app img, #app script").count() == 0


def test_a_view_is_exported_as_a_file_and_as_python_lines(tab: Any, server: Server) -> None:
    visit(tab, server, "model=writer&site=decoder.2.self&head=3&query=2&key=1")
    settle(tab)
    tab.locator("header button", has_text="Export").click()
    with tab.expect_download() as saved:
        tab.locator("[data-format=csv]").click()
    assert saved.value.suggested_filename == "decoder.2.self-3.csv"
    tab.locator("[data-format=python]").click()
    lines = tab.locator("dialog pre").inner_text()
    found: dict[str, Any] = {}
    exec(compile(lines, "exported", "exec"), found)  # as a reader would paste it
    assert weight(tab) == pytest.approx(found["weight"], abs=1e-4)


def test_another_site_keeps_the_query_where_it_reads_the_same_text(
    tab: Any, server: Server
) -> None:
    place = "model=translator&to=fr&site=decoder.1.cross&head=1&query=4&key=2"
    visit(tab, server, place)
    tab.locator("[data-map]").first.wait_for()
    tab.get_by_role("button", name=re.compile(r"^decoder\.2\.self head 3")).click()
    expect(tab.locator("#view-title")).to_contain_text("decoder.2.self")
    settle(tab)
    expect(tab.locator("#query")).to_have_value("4")
    with gf.watch(model := gf.load("translator")) as trace:
        gf.translate(model, "The cat sat on the mat.", to="fr", beams=1)
    row = trace["decoder.2.self"].weights(head=3)[4]
    expect(tab.locator("#key")).to_have_value(str(int(row.argmax())))  # other keys: the strongest
    expect(tab.locator("[data-token][aria-pressed=true]")).to_have_count(1)
    tab.get_by_role("button", name=re.compile(r"^decoder\.3\.self head 0")).click()
    expect(tab.locator("#view-title")).to_contain_text("decoder.3.self")
    expect(tab.locator("#key")).to_have_value(str(int(row.argmax())))


def test_a_long_text_is_sketched(chromium: Any, tmp_path: Path) -> None:
    """Beyond what a browser computes: some queries at once, and every cell exactly."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 4096, 8).unbind(0)
    site = Site(name="decoder.0.self", q=2 * q, k=k, v=v, mask=gf.Causal())
    words = TracedText(torch.arange(4096)[None], [[f"t{i}" for i in range(4096)]])
    Trace([Run({site.name: site}, {"tokens": words})]).save(tmp_path / "long.trace")
    with serving("glassformer.workbench.desk", tmp_path / "long.trace", size=1) as server:
        context = chromium.new_context(viewport={"width": 1280, "height": 720}, locale="en-GB")
        tab = context.new_page()
        faults = listen(tab, server)
        tab.goto(f"http://{server.host}/#token={TOKEN}&model=long.trace&head=0&query=4000&key=17")
        chosen = tab.locator("#weight")
        chosen.wait_for()
        exact = float(site.weights(head=0, rows=[4000])[0, 17])
        assert float(chosen.get_attribute("data-weight")) == pytest.approx(exact, rel=1e-4)
        settle(tab)
        tab.keyboard.press("]")
        expect(tab.locator("#view-title")).to_contain_text("head 1")
        exact = float(site.weights(head=1, rows=[4000])[0, 17])
        expect(chosen).to_have_attribute("data-weight", re.compile(f"^{exact:.4f}"[:8]))
        tab.locator("[role=application]").focus()
        tab.keyboard.press("ArrowUp")
        expect(tab).not_to_have_url(re.compile("query=4000"))
        tab.keyboard.press("t")
        row = tab.locator("#view-panel tbody tr").last
        expect(row).to_contain_text("t4095")
        best = float(site.weights(head=1, rows=[4095]).max())
        assert float(row.locator("td").last.inner_text()) == pytest.approx(best, abs=1e-3)
        assert not faults
        context.close()


def test_a_large_head_is_drawn_in_two_steps(chromium: Any, tmp_path: Path) -> None:
    """Some queries first, which the page says, then all; every number is exact from the first."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 1024, 64).unbind(0)
    site = Site(name="decoder.0.self", q=2 * q, k=k, v=v, mask=gf.Causal())
    words = TracedText(torch.arange(1024)[None], [[f"t{i}" for i in range(1024)]])
    Trace([Run({site.name: site}, {"tokens": words})]).save(tmp_path / "large.trace")
    with serving("glassformer.workbench.desk", tmp_path / "large.trace", size=1) as server:
        context = chromium.new_context(viewport={"width": 1280, "height": 720}, locale="en-GB")
        tab = context.new_page()
        faults = listen(tab, server)
        tab.goto(f"http://{server.host}/#token={TOKEN}&model=large.trace&head=0&query=1001&key=17")
        tab.locator("#view-panel[data-every='1']").wait_for()
        settle(tab)
        steps = tab.evaluate("""() => new Promise((done) => {
          const steps = [], panel = document.querySelector('#view-panel');
          const note = () => document.querySelector('.heading [role=status]').textContent.trim();
          const weight = () => document.querySelector('#result').dataset.value;
          new MutationObserver(() => {
            steps.push([panel.dataset.every, note(), weight()]);
            if (steps.length === 2) done(steps);
          }).observe(panel, { attributeFilter: ['data-every'] });
          window.dispatchEvent(new KeyboardEvent('keydown', { key: ']' }));
        })""")
        exact = float(site.weights(head=1, rows=[1001])[0, 17])
        (part, note, first), (whole, silence, last) = steps
        assert (part, whole) == ("8", "1")
        assert "1 query in 8" in note and silence == ""
        assert float(first) == float(last) == pytest.approx(exact, rel=2e-3)  # 16 bits a number
        assert not faults
        context.close()
