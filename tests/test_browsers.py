"""A browser whose driver has died is started again, and the test in which it died is run again."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser


def kill_driver(browser: Any) -> None:
    process = browser.driver.play._impl_obj._connection._transport._proc
    os.kill(process.pid, signal.SIGKILL)


def test_a_page_after_the_driver_died(chromium: Any) -> None:
    starts = chromium.driver.starts
    kill_driver(chromium)
    time.sleep(0.2)
    page = chromium.new_page()
    page.goto("data:text/html,<p>again</p>")
    assert page.inner_text("p") == "again"
    page.close()
    assert chromium.driver.starts == starts + 1


def test_the_test_in_which_it_dies_is_run_again(chromium: Any, tmp_path_factory: Any) -> None:
    died = Path(tmp_path_factory.getbasetemp()) / "died"
    page = chromium.new_page()
    if not died.exists():
        died.touch()
        kill_driver(chromium)
    page.goto("data:text/html,<p>here</p>")
    assert page.inner_text("p") == "here"
    page.close()
