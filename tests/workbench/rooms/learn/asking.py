"""Jobs of Learn as a worker does them, answers held against their wire models."""

import json
from collections.abc import Callable
from typing import Any

from glassformer.workbench.desk import handle
from glassformer.workbench.wire import JOBS


def ask(
    job: str, *, progress: Callable[[float], None] = lambda _: None, **asked: Any
) -> dict[str, Any]:
    """The answer of a job, checked and as plain as JSON."""
    found = handle(f"learn/{job}", asked, progress)
    JOBS[f"learn/{job}"].answered.model_validate(found)
    return json.loads(json.dumps(found, allow_nan=False))
