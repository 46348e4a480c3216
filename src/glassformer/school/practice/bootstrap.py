"""Starts the server without running glassformer/__init__.py.

The package's own attention, layers and models are answers to exercises. What was never imported
is in no memory that a learner's process inherits, however it walks through frames and objects.
"""

import sys
import types
from pathlib import Path

if __name__ == "__main__":
    package = types.ModuleType("glassformer")
    package.__path__ = [str(Path(__file__).resolve().parents[2])]
    sys.modules["glassformer"] = package
    from glassformer.school.practice.server import serve

    serve()
