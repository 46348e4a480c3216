"""The shortlist of a translator is read back as it was written, or refused with a reason."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from glassformer.errors import CheckpointError
from glassformer.text.shortlist import FILE, Shortlist, TargetShortlist, read_shortlist

COLUMNS = {
    "fr.always": np.array([9, 2], dtype=np.uint16),
    "fr.offsets": np.array([0, 0, 2, 3, 3, 3, 3, 3, 3, 3, 3], dtype=np.int32),
    "fr.tokens": np.array([7, 5, 9], dtype=np.uint16),
}


def write(folder: Path, **changes: np.ndarray | None) -> None:
    columns = COLUMNS | {f"fr.{name}": value for name, value in changes.items()}
    content = {name: value for name, value in columns.items() if value is not None}
    (folder / FILE).write_bytes(save(content))


@pytest.mark.parametrize("code", ["fr", ""])
def test_round_trip(tmp_path: Path, code: str) -> None:
    assert read_shortlist(tmp_path, 10) is None
    always, offsets, tokens = COLUMNS.values()
    target = TargetShortlist(always=always, offsets=offsets, tokens=tokens)
    (tmp_path / FILE).write_bytes(Shortlist(targets={code: target}).as_bytes())
    found = read_shortlist(tmp_path, 10)
    assert found is not None and found.targets.keys() == {code}
    assert found.targets[code].select([2, 1, 2]).nonzero()[0].tolist() == [2, 5, 7, 9]
    assert found.targets[code].select([2]).nonzero()[0].tolist() == [2, 9]
    assert found.targets[code].select([1, 3]) is None  # 3 was in no training pair
    assert found.as_bytes() == (tmp_path / FILE).read_bytes()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"always": None}, r"must have always, offsets and tokens of.*it has .fr.offsets, fr.tok"),
        ({"more": np.array([1])}, r"it has .fr.always, fr.more, fr.offsets, fr.tokens"),
        ({"tokens": np.ones((3, 1), dtype=np.int32)}, r"The tokens of fr.*the shape \(3, 1\)"),
        ({"always": np.array([0.5])}, r"The always of fr .*whole numbers.*type float64"),
        ({"offsets": np.arange(4)}, r"from 0 to the number of tokens, 3, in 11 steps.*there are 4"),
        ({"offsets": np.array([0, 2, 1, *[3] * 8])}, r"offsets of fr .*must rise from 0"),
        ({"offsets": np.array([1, *[3] * 10])}, r"offsets of fr .*must rise from 0"),
        ({"always": np.array([2, 10])}, r"ids from 0 to 9; there is 10"),
        ({"tokens": np.array([7, -1, 9])}, r"ids from 0 to 9; there is -1"),
    ],
)
def test_refusals(tmp_path: Path, changes: dict, sentence: str) -> None:
    write(tmp_path, **changes)
    with pytest.raises(CheckpointError, match=sentence):
        read_shortlist(tmp_path, 10)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-3])
    with pytest.raises(CheckpointError, match=r"shortlist.safetensors cannot be read: "):
        read_shortlist(tmp_path, 10)
