"""Browsers that tests share, each started once and again after its driver has died.

Playwright talks to browsers through a process of its own. When that dies, every test after it
would fail for nothing that it tests: so a page is opened by a new driver then. A browser test that
fails is run again, twice at most, and listed among the reruns (tests/conftest.py).
"""

import shutil
from collections.abc import Callable
from typing import Any

# What Playwright says of its own process, never of a page.
DEAD = ("Playwright connection closed", "Connection closed while reading from the driver")

QUIET = (  # a browser that asks nobody for anything
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_program(*names: str) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


class Driver:
    """Playwright's process; `restart` is for one that has died."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self.play = start()
        self.starts = 1

    def restart(self) -> None:
        self.play.stop()
        self.play = self._start()
        self.starts += 1


class SharedBrowser:
    """One browser for all tests."""

    def __init__(self, driver: Driver, launch: Callable[[Any], Any]) -> None:
        self.driver, self._launch = driver, launch
        self._open()

    def _open(self) -> None:
        self.browser, self._start = self._launch(self.driver.play), self.driver.starts

    @property
    def version(self) -> str:
        return self.browser.version

    def new_page(self, **options: Any) -> Any:
        return self._ask("new_page", options)

    def new_context(self, **options: Any) -> Any:
        return self._ask("new_context", options)

    def close(self) -> None:
        self.browser.close()

    def _ask(self, what: str, options: dict[str, Any]) -> Any:
        try:
            return getattr(self.browser, what)(**options)
        except Exception as error:
            if not any(dead in str(error) for dead in DEAD):
                raise
        if self._start == self.driver.starts:  # no other browser has found out before
            self.driver.restart()
        self._open()
        return getattr(self.browser, what)(**options)
