"""The coverage of a translator is read back as it was written, or refused with a reason."""

import json

import pytest

from glassformer.errors import CheckpointError
from glassformer.text.coverage import FILE, Coverage, TargetCoverage, read_coverage


def test_round_trip(tmp_path) -> None:
    zh = TargetCoverage(own=(3, 5), borrowed=(7,), has_spaces=False)
    coverage = Coverage(characters=frozenset("ab\u200d猫"), plain={"’": "'"}, targets={"zh": zh})
    assert read_coverage(tmp_path, 8) is None
    (tmp_path / FILE).write_bytes(coverage.as_bytes())
    assert read_coverage(tmp_path, 8) == coverage


GOOD = {"characters": "ab", "plain": {}, "targets": {"fr": {"own": [1, 2]}}}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"characters": 3}, r"must have the characters of all sources as a string.*it has 3 and"),
        ({"plain": {"a": 1}}, r"a table of those that are written otherwise.*\{'a': 1\}"),
        ({"targets": []}, r"must have a table of target languages; it has \[\]"),
        ({"targets": {"fr": {"own": [1, 8]}}}, r"ids from 0 to 7; fr has 8"),
        ({"targets": {"fr": {"ow": [1]}}}, r"has no setting ow. Did you mean own"),
    ],
)
def test_refusals(tmp_path, change: dict, sentence: str) -> None:
    (tmp_path / FILE).write_text(json.dumps(GOOD | change))
    with pytest.raises(CheckpointError, match=sentence):
        read_coverage(tmp_path, 8)
