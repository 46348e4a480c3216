"""Training in a browser: a run that still grows is followed, and its heads are scrubbed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from glassformer.tracing import Trace
from training.small_runs import language, run
from workbench.browsing import listen
from workbench.served import TOKEN, Server, serving

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

SETTINGS = {
    "until": {"steps": 30},
    "show": {"every": 5},
    "evaluate": {"every_steps": 10},
    "snapshots": {"every": 10, "text": "abcabc"},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("runs")
    run(language(there, **SETTINGS), there / "alphabet")
    return there / "alphabet"


@pytest.fixture(scope="module")
def growing(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a run has it that still trains: without a model, and with half of the log."""
    folder = tmp_path_factory.mktemp("runs") / "growing"
    folder.mkdir()
    for name in ("recipe.toml", "essence.json"):
        (folder / name).write_bytes((finished / name).read_bytes())
    lines = (finished / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_bytes(b"".join(lines[:3]))
    return folder


@pytest.fixture(scope="module")
def server(finished: Path, growing: Path) -> Iterator[Server]:
    with serving("glassformer.workbench.desk", finished, growing, size=1) as found:
        yield found


@pytest.fixture
def enter(chromium: Any, server: Server) -> Iterator[Any]:
    opened: list[tuple[Any, list[str]]] = []

    def open_room(asked: str) -> Any:
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        opened.append((page, listen(page, server)))
        page.goto(f"http://{server.host}/#token={TOKEN}&room=training&{asked}")
        page.locator(".state, pre").first.wait_for()
        return page

    yield open_room
    for page, faults in opened:
        page.close()
        assert faults == []


def test_curves_and_heads_share_a_cursor(enter: Any, finished: Path) -> None:
    page = enter("model=alphabet&lang=en&training.heads=decoder.0.self:1")
    expect(page.locator(".state")).to_contain_text("language, step 30 of 30. It is finished.")
    loss = page.get_by_role("slider", name="Loss, from step 5 to 30")
    loss.press("Home")
    expect(loss).to_have_attribute("aria-valuenow", "5")
    for _ in range(3):
        loss.press("ArrowRight")
    expect(loss).to_have_attribute("aria-valuenow", "20")
    drawn = page.get_by_role("img", name="decoder.0.self, head 1. Snapshot of step 20")
    expect(drawn).to_be_visible()
    weights = Trace.load(finished / "snapshots" / "00000020.trace")["decoder.0.self"].weights(
        head=1
    )
    shares = drawn.locator("rect[fill-opacity]").evaluate_all(
        "all => all.map((each) => Number(each.getAttribute('fill-opacity')))"
    )
    assert shares == pytest.approx(weights.flatten().tolist())
    expect(page.locator("blockquote")).not_to_be_empty()
    page.get_by_role("slider", name="Heads forming").press("End")
    expect(loss).to_have_attribute("aria-valuenow", "30")
    page.get_by_role("button", name="Add a head").click()
    expect(page.get_by_role("img")).to_have_count(2)
    page.wait_for_url(
        lambda url: (
            dict(parse_qsl(urlsplit(url).fragment)).get("training.heads")
            == "decoder.0.self:1,decoder.0.self:0"
        )
    )
    page.reload()
    expect(page.get_by_role("img")).to_have_count(2)


def test_a_run_that_grows_is_followed(enter: Any, finished: Path, growing: Path) -> None:
    page = enter("model=growing&lang=zh")
    expect(page.locator(".state")).to_contain_text("第 10 步，共 30 步")
    expect(page.get_by_text("第一份快照将在第 10 步保存。")).to_be_visible()
    whole = (finished / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    with (growing / "metrics.jsonl").open("ab") as log:
        log.write(b"".join(whole[3:6]))
    expect(page.locator(".state")).to_contain_text("第 20 步，共 30 步", timeout=20_000)
    expect(page.get_by_text("第 10 步本应保存快照，但没有找到。")).to_be_visible()
    (growing / "snapshots").mkdir()
    for name in ("00000010.trace", "samples.jsonl"):
        (growing / "snapshots" / name).write_bytes((finished / "snapshots" / name).read_bytes())
    expect(page.get_by_role("img")).to_have_count(1, timeout=20_000)
    expect(page.locator("blockquote")).not_to_be_empty()


def test_what_is_no_run_leads_to_one(enter: Any) -> None:
    page = enter("model=writer&lang=en")
    expect(page.get_by_text("writer is not a training run.")).to_be_visible()
    expect(page.locator("pre")).to_contain_text("glassformer serve run")
    page.get_by_role("button", name="alphabet").click()
    expect(page.locator(".state")).to_contain_text("step 30 of 30")
