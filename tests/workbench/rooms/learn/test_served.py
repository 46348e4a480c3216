"""Learner code behind the server: it ends, the server goes on, the token stays out of reach."""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from glassformer.languages import Language
from glassformer.school.lab import ExperimentTexts
from glassformer.school.practice import find_exercise
from workbench.served import PATIENCE, TOKEN, Server, serving

SCORES = find_exercise("dot_product_scores")
ENDLESS = "def scores(q, k):\n    while True:\n        print('x' * 9999, end='')\n"
SPYING = """
import os, sys
def scores(q, k):
    print(sorted(os.environ.items()), sys.argv)
    for place in ("self", os.getppid(), 1):
        for file in ("environ", "cmdline"):
            try:
                print(open(f"/proc/{place}/{file}").read())
            except OSError as error:
                print(error)
    return q
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home, before = tmp_path_factory.mktemp("served"), Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home / "data"))
        patch.chdir(home)
        with serving("glassformer.workbench.desk", size=2) as found:
            yield found
    assert Path.cwd() == before


def check(server: Server, source: str) -> dict:
    status, found = server.ask("/api/learn/check", {"name": SCORES.name, "source": source})
    assert status == 200, found
    return found


def test_the_server_goes_on_while_and_after_bad_code_runs(server: Server) -> None:
    with ThreadPoolExecutor(1) as pool:
        bad = pool.submit(check, server, ENDLESS)
        while not bad.done():
            assert server.ask("/api/status")[0] == 200
            time.sleep(0.05)  # what runs needs the processor, too
        assert not bad.result()["is_passed"] and len(bad.result()["printed"]) < 1 << 20
    assert check(server, SCORES.solution)["is_passed"]
    assert server.pool.replaced == 0


def test_a_long_experiment_is_drawn_and_holds_nothing_up(server: Server) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {
        "X-Glassformer-Token": TOKEN,
        "Accept": "application/x-ndjson",
        "Content-Type": "application/json",
    }
    asked = json.dumps({"name": "residual", "size": "full"})
    line.request("POST", "/api/learn/measure", asked, headers)
    said = line.getresponse()
    partial = next(each for each in map(json.loads, said) if "partial" in each)["partial"]
    titles = [panel["title"] for panel in partial["charts"]["zh"]["panels"]]
    texts = ExperimentTexts("residual", Language("zh"))
    assert titles == [texts("gradients"), texts("learning")]
    assert check(server, SCORES.solution)["is_passed"]
    assert server.ask("/api/learn/questions", {"topic": "scale"})[1]["questions"]
    for text in ("a cat", "a dog", "a hat"):  # whichever worker they belong to
        status, found = server.ask("/api/run", {"model": "writer", "text": text})
        assert status == 200 and found["page"]
    assert server.pool.waiting == 1, "the experiment must still be running"
    line.close()
    assert server.pool.replaced == 0


def test_learner_code_does_not_see_the_token(server: Server) -> None:
    found = check(server, SPYING)
    assert not found["is_passed"] and found["printed"] and TOKEN not in found["printed"]


def test_a_capstone_reports_progress_and_holds_nothing_up(server: Server) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {
        "X-Glassformer-Token": TOKEN,
        "Accept": "application/x-ndjson",
        "Content-Type": "application/json",
    }
    asked = json.dumps({"path": "translator", "text": "Stop!", "to": "fr"})
    line.request("POST", "/api/learn/join", asked, headers)
    said = line.getresponse()
    assert json.loads(said.readline())["progress"] == 0
    assert server.ask("/api/learn/plan", {"name": "weekend"})[1]["next"]["name"] == "why"
    assert server.pool.waiting == 1, "the capstone must still be running"
    last = [json.loads(each) for each in said]
    shares = [each["progress"] for each in last if "progress" in each]
    assert shares == sorted(shares) and last[-1]["result"]["is_equal"]
    line.close()


def test_running_code_needs_the_token(server: Server) -> None:
    asked = {"name": SCORES.name, "source": SCORES.solution}
    status, _ = server.ask("/api/learn/check", asked, **{"X-Glassformer-Token": "guess"})
    assert status == 401


@pytest.mark.parametrize(
    ("job", "asked"),
    [
        ("chapter", {"name": "../../etc/passwd"}),
        ("exercise", {"name": "../../../etc/passwd"}),
        ("measure", {"name": "os"}),
        ("measure", {"name": "heads", "model": "/etc"}),
        ("measure", {"name": "scale", "seed": -1}),
        ("save", {"name": SCORES.name, "source": "\ud800"}),
        ("grade", {"name": "scale-why", "grade": "perfect"}),
        ("course", {"lang": "../en"}),
        ("plan", {"name": "../plans"}),
        ("capstone", {"path": "/etc"}),
        ("join", {"path": "translator", "text": "a", "folder": "/etc"}),
        ("join", {"path": "decoder", "text": "a", "checkpoint": "hf://org/name"}),
        ("join", {"path": "decoder", "text": "a" * 501}),
        ("join", {"path": "translator", "text": "\ud800"}),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(
    server: Server, job: str, asked: dict
) -> None:
    status, found = server.ask(f"/api/learn/{job}", asked)
    assert status == 422 and found["error"]
