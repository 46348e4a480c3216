"""The schema that types are generated from, and the types that the front end has."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.workbench.schema import describe_api
from glassformer.workbench.wire import JOBS

TYPES = Path(__file__).parents[2] / "web/src/bench/wire.ts"


def test_every_job_is_described_and_nothing_is_loaded():
    code = (
        "import runpy, sys\n"
        "runpy.run_module('glassformer.workbench.schema', run_name='__main__')\n"
        "assert 'torch' not in sys.modules"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(ended.stdout)
    assert found == describe_api()
    assert {f"/api/{name}" for name in JOBS} < set(found["paths"])


def test_the_types_of_the_front_end_are_of_this_schema():
    """`make check-web` compares them whole; names and fields are compared here, without node."""
    if not TYPES.is_file():
        pytest.skip("the sources of the front end are not here")
    text = TYPES.read_text("utf-8")
    for name, form in describe_api()["components"]["schemas"].items():
        body = re.search(rf"^        {re.escape(name)}: \{{$(.*?)^        \}};$", text, re.M | re.S)
        assert body is not None, f"{name} is missing. Run: make web"
        fields = re.findall(r"^            (\w+)\??:", body[1], re.MULTILINE)
        assert fields == list(form.get("properties", {})), f"{name} has changed. Run: make web"
