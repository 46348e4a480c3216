"""The page computes beside its main thread, and where it may not, in slices of it."""

import pytest

from render.conftest import settled
from render.page_traces import decoder

pytestmark = pytest.mark.browser
# Counts how often the main thread gets a turn while a head is being computed.
BEAT = """() => {
  window.beats = 0;
  const panel = document.querySelector('#view-panel');
  const beat = () => {
    if (panel.getAttribute('aria-busy') === 'true') window.beats++;
    setTimeout(beat);
  };
  beat();
}"""
# A fast machine needs no second slice for this text; with a fast clock slices are short.
FAST_CLOCK = "const now = performance.now.bind(performance); performance.now = () => 50 * now();"
NO_WORKER = {
    "no workers at all": "delete window.Worker",
    "workers are forbidden": "window.Worker = class { constructor() { throw new Error('no') } }",
    "a worker that never begins": """window.Worker = class extends EventTarget {
      constructor() {
        super();
        setTimeout(() => this.onerror(new Event('error', { cancelable: true })));
      }
      postMessage() {}
      terminate() {}
    }""",
}


def check_head(tab, trace, head: int) -> None:
    """What is shown is this head, and its numbers are the trace's."""
    settled(tab)
    assert tab.locator("#view-title").inner_text().split() == ["decoder.0.self", "head", str(head)]
    query, key = map(int, tab.locator("#result").get_attribute("data-cell").split())
    weight = float(tab.locator("#result").get_attribute("data-value"))
    expected = float(trace["decoder.0.self"].weights(head=head, rows=[query])[0, key])
    assert weight == pytest.approx(expected, abs=1e-4)


def test_heads_are_computed_in_a_thread_of_their_own(open_page) -> None:
    trace = decoder(1024, layers=1, heads=3, dim=32)
    tab = open_page(trace, fragment="#head=0&query=900&key=30")
    assert len(tab.workers) == 1
    tab.evaluate(BEAT)
    tab.keyboard.press("]")
    check_head(tab, trace, 1)
    assert tab.evaluate("beats") >= 2  # a page that waited would have none


@pytest.mark.parametrize("script", NO_WORKER.values(), ids=NO_WORKER.keys())
def test_without_workers_the_page_works_and_stays_responsive(open_page, script: str) -> None:
    trace = decoder(1024, layers=1, heads=3, dim=32)
    tab = open_page(trace, fragment="#head=0&query=900&key=30", script=FAST_CLOCK + script)
    assert tab.workers == []
    tab.evaluate(BEAT)
    tab.keyboard.press("]")
    check_head(tab, trace, 1)
    assert tab.evaluate("beats") >= 5


def test_a_frame_that_has_no_size_yet(open_page) -> None:
    trace = decoder(6, layers=1, heads=2)
    no_size = "Object.defineProperty(window, 'innerWidth', { get: () => 0 })"
    tab = open_page(trace, fragment="#head=0&query=4&key=3", script=no_size)
    check_head(tab, trace, 0)


def test_only_the_newest_head_counts(open_page) -> None:
    trace = decoder(600, layers=1, heads=7, dim=16)
    tab = open_page(trace, fragment="#head=0&query=500&key=30")
    for _ in range(5):
        tab.keyboard.press("]")  # while the one before is still being computed
    check_head(tab, trace, 5)


def test_title_and_numbers_change_together(open_page) -> None:
    """While another head is computed, the page shows the one before, and says so."""
    trace = decoder(1024, layers=1, heads=2, dim=32)
    tab = open_page(trace, fragment="#head=0&query=900&key=30")
    tab.evaluate("""() => {
      window.seen = [];
      const note = () => window.seen.push([
        document.querySelector('#view-title').textContent.trim().split(/\\s+/).at(-1),
        document.querySelector('#result').dataset.value,
      ].join(' '));
      new MutationObserver(note).observe(document.body,
        { subtree: true, childList: true, characterData: true, attributes: true });
    }""")
    tab.keyboard.press("]")
    check_head(tab, trace, 1)
    pairs = set(tab.evaluate("seen"))
    heads = [pair.split()[0] for pair in pairs]
    assert sorted(heads) == ["0", "1"]  # one number for each head, never one of the other
