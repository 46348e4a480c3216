"""The plug-in: vLLM calls `register` in each of its processes, before any model is built.

The entry point is in the group `vllm.general_plugins`. It puts our backends in place of those they
are made of, through vLLM's own registry; until a model is watched they do nothing but compute.
"""

import logging
from importlib import import_module

from glassformer.tracing.engines.vllm import backends
from glassformer.tracing.engines.vllm.version import TESTED, find_version, is_tested

# Backends of one layout: query, key and value of all requests, one below the other.
NAMES = ("CPU_ATTN", "FLASH_ATTN", "TRITON_ATTN", "FLEX_ATTENTION")

_log = logging.getLogger(__name__)


def register() -> None:
    """Register our backends; serving goes on without them if that fails."""
    version = find_version()
    if version is None or not is_tested(version):
        _log.warning(
            "glassformer watches vLLM %s; this is vLLM %s, which it leaves alone.", TESTED, version
        )
        return
    try:
        registry = import_module("vllm.v1.attention.backends.registry")
        for name in NAMES:
            member = registry.AttentionBackendEnum[name]
            path = member.get_path()
            if not path.startswith(backends.__name__):  # plug-ins may be loaded more than once
                backends.WRAPPED[name] = path
                registry.register_backend(member, f"{backends.__name__}.{name}")
    except Exception as error:
        _log.warning("glassformer cannot watch this vLLM: %s: %s", type(error).__name__, error)
