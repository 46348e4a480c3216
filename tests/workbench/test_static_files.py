"""The built files and the texts, as they are served."""

import gzip
import json
from collections.abc import Iterator
from importlib.resources import files

import pytest

from glassformer.languages import CODES
from workbench.served import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("workbench.sample_jobs", size=1) as found:
        yield found


def test_the_texts_are_those_of_the_catalogues(server: Server) -> None:
    status, headers, body = server.send("GET", "/texts.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    found = json.loads(body)
    assert list(found) == list(CODES)
    for code in CODES:
        catalogue = json.loads(files("glassformer.languages").joinpath(f"{code}.json").read_bytes())
        shown = {k for k in catalogue if k.split(".")[0] in ("page", "bench") or "look.role" in k}
        assert found[code] == {key: catalogue[key] for key in shown}
    assert len(found["en"]) > 100 and "page.head" in found["en"]


def test_files_are_compressed_where_that_is_accepted(server: Server) -> None:
    plain = server.send("GET", "/texts.json")
    packed = server.send("GET", "/texts.json", None, {"Accept-Encoding": "gzip, deflate"})
    assert "content-encoding" not in plain[1] and packed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain[2] and len(packed[2]) < len(plain[2]) / 2


def test_a_file_that_the_browser_has_is_not_sent_again(server: Server) -> None:
    _, headers, _ = server.send("GET", "/texts.json")
    assert headers["cache-control"] == "no-cache"
    given = {"If-None-Match": headers["etag"]}
    status, again, body = server.send("GET", "/texts.json", None, given)
    assert (status, body) == (304, b"") and again["etag"] == headers["etag"]
    status, _, body = server.send("GET", "/texts.json", None, {"If-None-Match": '"other"'})
    assert status == 200 and body


def test_the_application_is_served_or_said_to_be_missing(server: Server) -> None:
    folder = files("glassformer.workbench").joinpath("static")
    status, headers, body = server.send("GET", "/")
    if folder.joinpath("index.html").is_file():
        assert status == 200 and body == folder.joinpath("index.html").read_bytes()
        assert headers["content-type"] == "text/html; charset=utf-8"
    else:
        assert status == 404 and b"make web" in body
