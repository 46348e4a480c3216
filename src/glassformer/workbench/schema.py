"""The OpenAPI schema of the workbench; no server runs for it.

python -m glassformer.workbench.schema                 everything
python -m glassformer.workbench.schema --components    what is asked and answered, for types alone
"""

import json
import sys
from typing import Any

from glassformer.workbench.app import create_app
from glassformer.workbench.pool import Pool


def describe_api() -> dict[str, Any]:
    """All that can be asked, and what is answered."""
    gate = create_app(Pool("glassformer.workbench.desk"), token="", hosts=set(), version="0")
    return gate.app.openapi()


if __name__ == "__main__":
    schema = describe_api()
    if "--components" in sys.argv:
        schema["paths"] = {}
    json.dump(schema, sys.stdout, indent=1)
