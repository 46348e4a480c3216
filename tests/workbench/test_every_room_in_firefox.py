"""Every room in Firefox: it renders, says nothing wrong, and shows the library's numbers."""

from collections.abc import Iterator
from typing import Any

import pytest

from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.requests import ReadingRequest
from workbench.browsing import HEAD, KEY, QUERY, ROOMS, SITE, TEXT, enter, listen, train_alphabet
from workbench.served import TOKEN, Server, serving

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(firefox: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    trained = train_alphabet(tmp_path_factory.mktemp("runs"))
    with serving("glassformer.workbench.desk", trained, size=1) as found:
        yield found


def test_every_room_opens_and_says_the_same_weight(firefox: Any, server: Server) -> None:
    page = firefox.new_page(viewport={"width": 1280, "height": 720})
    faults = listen(page, server)
    page.goto(f"http://{server.host}/#token={TOKEN}&theme=dark")
    site = Memory().reading(ReadingRequest(model="writer", text=TEXT), lambda _: None).trace[SITE]
    expected = float(site.weights(HEAD)[QUERY, KEY])
    said = {
        "look": ("#result", "data-value"),
        "steps": (f"td[data-step=weights][data-key='{KEY}']", "data-value"),
        "atlas": ("#weight", "data-weight"),
    }
    for n, (name, (place, content)) in enumerate(ROOMS.items()):
        enter(page, f"{place}&lang={('en', 'zh')[n % 2]}", content)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        if name in said:
            spot, attribute = said[name]
            found = float(page.locator(spot).first.get_attribute(attribute))
            assert found == pytest.approx(expected, abs=1e-4), name
        assert faults == [], name
    page.reload()
    page.locator(ROOMS["learn"][1]).wait_for()
    page.go_back()
    page.locator(ROOMS["training"][1]).first.wait_for()
    page.close()
    assert faults == []
