"""Foreign files that are damaged: a sentence, or exactly the model that was saved."""

import random
import struct
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from closeness import assert_same
from glassformer.errors import CheckpointError
from glassformer.models.checkpoints import load
from tiny_models import saved

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("gpt2")
    saved("gpt2", path)
    return path


def assert_refused_or_equal(folder: Path, expected: dict[str, torch.Tensor]) -> bool:
    """Whether it was refused; a model that loads must be the one that was saved."""
    try:
        state = load(folder).state_dict()
    except CheckpointError as error:
        assert "\n" not in str(error)
        return True
    assert list(state) == list(expected)
    for name, tensor in state.items():
        assert_same(tensor, expected[name])
    return False


def test_truncation_anywhere_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    try:
        for offset in [0, *random.Random(1).sample(range(len(content) - 1), k=100)]:
            path.write_bytes(content[:offset])
            with pytest.raises(CheckpointError, match=r"model.safetensors is (damaged|empty)"):
                load(folder)
    finally:
        path.write_bytes(content)


def test_a_flipped_bit_in_the_header_never_makes_another_model(folder: Path) -> None:
    """All bits of the length, and two hundred of the names, shapes and places behind it."""
    path = folder / "model.safetensors"
    content, expected = path.read_bytes(), load(folder).state_dict()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    bits = [*range(64), *random.Random(2).sample(range(64, 8 * end), k=200)]
    try:
        refused = 0
        for bit in bits:
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(bytes(flipped))
            refused += assert_refused_or_equal(folder, expected)
        assert refused > 0.9 * len(bits)  # the rest lies in spaces and in the metadata
    finally:
        path.write_bytes(content)


@given(junk=st.binary(max_size=300))
def test_any_bytes_instead_of_the_weights(folder: Path, junk: bytes) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    try:
        path.write_bytes(junk)
        with pytest.raises(CheckpointError):
            load(folder)
    finally:
        path.write_bytes(content)


@given(junk=st.binary(max_size=200) | st.text().map(str.encode))
def test_any_bytes_instead_of_the_config(folder: Path, junk: bytes) -> None:
    path = folder / "config.json"
    content = path.read_bytes()
    try:
        path.write_bytes(junk)
        with pytest.raises(CheckpointError):
            load(folder)
    finally:
        path.write_bytes(content)
