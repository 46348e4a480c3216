"""The workbench as its user waits for it: start, sentences, heads, bytes of the first load, memory.

python benchmarks/workbench.py                       all of it, in Chromium
python benchmarks/workbench.py --without-browser     what the server takes, over HTTP

Starts are fresh processes of `glassformer serve` with the shipped translator; the browser runs
already, as it usually does. The first picture is there when the map of a head has been drawn. A
sentence takes from its last key, Enter, until the map of the new sentence has been drawn; each is
new to the server, and typed when the one before is shown with all of its heads. A head is switched
by its key, to the next one, or by a click on the map of a distant one, in a short text and in saved
traces of random operands (8 heads of 64); of heads that are drawn in two steps, the first picture
shows some queries, and the second all. Times are medians with the range of all; memory is the
proportional share of each process of the server (PSS), summed, at the end.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import glassformer as gf
from glassformer.tracing import Run, Site, Trace, TracedText

SENTENCES = (
    "The old man reads a long book in the garden.",
    "My sister bought a red car yesterday.",
    "Where is the nearest station?",
    "The children play football in the park.",
    "I would like a cup of coffee.",
    "A dog is running on the beach with its owner.",
    "We will leave the house before eight.",
    "She has not answered my letter.",
    "There are two birds in the tall tree.",
    "He opened the window because it was hot.",
)
LENGTHS = (512, 2048, 16_384, 131_072)
FAR = 3  # heads: neighbours are asked for before anybody goes there

# Frames are waited for: a picture that has not been drawn is not there.
TYPE = """async (text) => {
  const said = () => ['.insight', '.outcome'].map(
    (part) => document.querySelector(part)?.textContent).join();
  await new Promise((done) => setTimeout(done, 1000));
  const box = document.querySelector('#sentence'), before = said();
  box.focus();
  box.value = text;
  box.dispatchEvent(new Event('input', { bubbles: true }));
  await new Promise(requestAnimationFrame);
  const start = performance.now();
  const sent = { key: 'Enter', bubbles: true, cancelable: true };
  box.dispatchEvent(new KeyboardEvent('keydown', sent));
  for (;;) {
    await new Promise(requestAnimationFrame);
    const isDrawn = document.querySelector('#view-panel[aria-busy=false] canvas') !== null;
    if (said() !== before && isDrawn) return performance.now() - start;
    if (performance.now() - start > 60000) return NaN;
  }
}"""
# By the key, to the next head; or by a click on the map of one that lies `far` heads away. Large
# heads are drawn twice: some queries first, then all.
SWITCH = """async (far) => {
  await new Promise((done) => setTimeout(done, 500));
  const title = () => document.querySelector('#view-title').textContent, before = title();
  const maps = [...document.querySelectorAll('[data-map]')];
  const at = maps.findIndex((map) => map.getAttribute('aria-pressed') === 'true');
  const start = performance.now();
  const key = { key: ']', bubbles: true, cancelable: true };
  if (far === 0) window.dispatchEvent(new KeyboardEvent('keydown', key));
  else maps[(at + far) % maps.length].click();
  let first = NaN;
  for (;;) {
    await new Promise(requestAnimationFrame);
    const panel = document.querySelector('#view-panel[aria-busy=false]:has(canvas)');
    if (panel !== null && title() !== before) {
      if (isNaN(first)) first = performance.now() - start;
      if ((panel.dataset.every ?? '1') === '1') return [first, performance.now() - start];
    }
    if (performance.now() - start > 60000) return [NaN, NaN];
  }
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--without-browser", action="store_true")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    args = parser.parse_args()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} cores, load before: {load}")
    if args.without_browser:
        measure_server(args.starts)
    else:
        measure_in_browser(args.starts, args.lengths)
    return 0


def measure_server(n_starts: int) -> None:
    starts = []
    for n in range(n_starts):
        begin = time.perf_counter()
        with serving() as (host, token, server):
            ask(host, token, "run", text="The cat sat on the mat.")
            starts.append(time.perf_counter() - begin)
            if n == n_starts - 1:
                time.sleep(10)  # the second worker starts after the first picture
                spent = [
                    timed(lambda text=text: ask(host, token, "run", text=text))
                    for text in SENTENCES
                ]
                show("command to the first run", starts, "s")
                show("sentence to its run, over HTTP", [1000 * each for each in spent], "ms")
                print(f"{'memory of the server and its workers':<48} {memory(server):8.0f} MiB")


def measure_in_browser(n_starts: int, lengths: list[int]) -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=chromium)
        starts: list[float] = []
        for n in range(n_starts):
            tab = browser.new_page(viewport={"width": 1280, "height": 720})
            n_bytes = count_bytes(tab)
            begin = time.perf_counter()
            with serving() as (host, token, server):
                tab.goto(f"http://{host}/#token={token}")
                tab.locator("#view-panel[aria-busy=false] canvas").wait_for(timeout=120_000)
                starts.append(time.perf_counter() - begin)
                if n == n_starts - 1:
                    show("command to the first picture", starts, "s")
                    print(f"{'first load, compressed':<48} {sum(n_bytes.values()) / 1000:8.0f} kB")
                    tab.wait_for_timeout(10_000)  # the second worker starts after the first picture
                    spent = [tab.evaluate(TYPE, text) for text in SENTENCES]
                    show("typed sentence to its picture", spent, "ms")
                    measure_switches(tab, "10 tokens", 12)
                    print(f"{'memory of the server and its workers':<48} {memory(server):8.0f} MiB")
                tab.close()
        for length in lengths:
            path = Path(folder) / f"{length}.trace"
            make_trace(length).save(path)
            tab = browser.new_page(viewport={"width": 1280, "height": 720})
            with serving(str(path)) as (host, token, server):
                begin = time.perf_counter()
                tab.goto(f"http://{host}/#token={token}")
                tab.locator("#view-panel[aria-busy=false] canvas").wait_for(timeout=300_000)
                show(f"open a trace of {length:,} tokens", [time.perf_counter() - begin], "s")
                measure_switches(tab, f"{length:,} tokens", 7)
                print(f"{'memory of the server and its workers':<48} {memory(server):8.0f} MiB")
                tab.close()
            path.unlink()
        browser.close()


def measure_switches(tab: Any, what: str, times: int) -> None:
    """To the next head by its key, at once; then to distant ones, which nobody has asked for."""
    show_switches(f"head switch, {what}", [tab.evaluate(SWITCH, 0) for _ in range(times)])
    both = []
    for _ in range(3):
        tab.reload()
        tab.locator("[data-map]").nth(FAR).wait_for(timeout=120_000)
        both += [tab.evaluate(SWITCH, FAR) for _ in range(2)]
    show_switches(f"distant head, {what}", both)


def show_switches(what: str, both: list[tuple[float, float]]) -> None:
    show(what, [first for first, _ in both], "ms")
    if any(whole - first > 20 for first, whole in both):  # not in the same frame
        show(f"{what}, all queries", [whole for _, whole in both], "ms")


@contextmanager
def serving(*paths: str) -> Iterator[tuple[str, str, int]]:
    """A server that has said its address: where it is, its token, its process."""
    command = [sys.executable, "-m", "glassformer", "serve", *paths, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if "#token=" in line)
            host, token = line.split("http://")[1].strip().split("/#token=")
            yield host, token, server.pid
        finally:
            server.terminate()


def ask(host: str, token: str, job: str, **asked: Any) -> Any:
    line = http.client.HTTPConnection(host, timeout=600)
    headers = {"Content-Type": "application/json", "X-Glassformer-Token": token}
    body = json.dumps({"model": "translator", "to": "fr", **asked})
    line.request("POST", f"/api/{job}", body, headers)
    answer = line.getresponse()
    found = json.loads(answer.read())
    if answer.status != 200:
        raise SystemExit(found["error"])
    return found


def count_bytes(tab: Any) -> dict[str, int]:
    """Bytes as they travel, by request, from now on; filled while the page loads."""
    found: dict[str, int] = {}
    session = tab.context.new_cdp_session(tab)
    session.send("Network.enable")

    def add(event: dict[str, Any]) -> None:
        found[event["requestId"]] = int(event["encodedDataLength"])

    session.on("Network.loadingFinished", add)
    return found


def make_trace(length: int, heads: int = 8, dim: int = 64) -> Trace:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, heads, length, dim).unbind(0)
    site = Site(name="decoder.0.self", q=2 * q, k=k, v=v, mask=gf.Causal())
    words = TracedText(torch.arange(length)[None], [[f"t{i}" for i in range(length)]])
    return Trace([Run({site.name: site}, {"tokens": words})])


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(what: str, spent: list[float], unit: str) -> None:
    digits = 2 if unit == "s" else 0
    median, least, most = (
        f"{each:.{digits}f}" for each in (statistics.median(spent), min(spent), max(spent))
    )
    print(
        f"{f'{what}, median of {len(spent)}':<48} {median:>8} {unit} ({least} … {most})", flush=True
    )


def memory(server: int) -> float:
    """MiB of the server and its workers; what they share is divided among them."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    sizes = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in (str(server), *children)]
    return sum(int(each.split("\nPss:")[1].split()[0]) for each in sizes) / 1024


if __name__ == "__main__":
    sys.exit(main())
