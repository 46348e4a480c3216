"""Jobs of Learn as a worker does them, answers held against their wire models."""

import json
from typing import Any

from glassformer.workbench.desk import handle
from glassformer.workbench.wire import JOBS


def ignore(_share: float, _partial: Any = None) -> None:
    pass


def ask(job: str, *, progress: Any = ignore, **asked: Any) -> dict[str, Any]:
    """The answer of a job, checked and as plain as JSON."""
    found = handle(f"learn/{job}", asked, progress)
    JOBS[f"learn/{job}"].answered.model_validate(found)
    return json.loads(json.dumps(found, allow_nan=False))
