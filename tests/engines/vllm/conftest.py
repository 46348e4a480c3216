"""Models for the tests of `make test-vllm`; without vLLM nothing here is collected."""

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path

import pytest
import torch
from torch import Tensor

Expected = Callable[[Path, list[list[int]]], list[list[Tensor]]]

if find_spec("vllm") is None:
    collect_ignore_glob = ["test_*.py"]
else:  # read when vLLM is imported, and when an engine is built
    os.environ |= {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny models, by family, as transformers saves them."""
    from engines.vllm.served_models import save_models

    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Pool]:
    """A process without vLLM."""
    with get_context("spawn").Pool(1) as pool:
        yield pool


@pytest.fixture(scope="session")
def expected(elsewhere: Pool) -> Expected:
    """The weights of transformers' eager attention."""
    from engines.vllm.served_models import eager_weights

    def compute(folder: Path, texts: list[list[int]]) -> list[list[Tensor]]:
        found = elsewhere.apply(eager_weights, (folder, texts))
        return [[torch.from_numpy(each) for each in layers] for layers in found]

    return compute
