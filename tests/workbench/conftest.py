"""The workbench is an extra: without its packages its tests are not collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("fastapi") and find_spec("uvicorn") else ["*"]
