"""schemathesis over the API with the real jobs: whatever is asked, there is an answer and no 5xx.

GLASSFORMER_FUZZ says how many requests are made up for each job; benchmarks/workbench_fuzz.py makes
many. 503 is an answer: too much was asked at once.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from glassformer.workbench.schema import describe_api
from glassformer.workbench.wire import JOBS
from workbench.served import Server, serving

schemathesis = pytest.importorskip("schemathesis", reason="needs the package schemathesis")
N = int(os.environ.get("GLASSFORMER_FUZZ", "3"))
READINGS: list[dict[str, Any]] = [
    {"model": "writer", "text": "And God said"},
    {"model": "translator", "text": "A cat.", "to": "fr"},
    {"model": "reader", "text": "A [MASK]."},
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("glassformer.workbench.desk", size=1) as found:
        yield found


def list_schema() -> Any:
    return schemathesis.openapi.from_dict(describe_api())


@pytest.mark.parametrize("job", list(JOBS))
def test_no_request_is_a_fault(server: Server, job: str) -> None:
    """As the schema allows them, and with a model and a text that there are."""
    operation = list_schema()[f"/api/{job}"]["POST"]

    @settings(
        max_examples=N,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), reading=st.none() | st.sampled_from(READINGS))
    def ask(case: Any, reading: dict[str, Any] | None) -> None:
        body = case.body
        if reading is not None and isinstance(body, dict):
            body = {**body, **{name: reading[name] for name in reading if name in body}}
        status, found = server.ask(f"/api/{job}", body)
        assert status < 500 or status == 503, (job, body, found)
        assert status == 200 or found["error"]
        json.dumps(found, allow_nan=False)

    ask()
    assert server.ask("/api/status")[0] == 200
