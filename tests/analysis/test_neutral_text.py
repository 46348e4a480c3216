"""A neutral text stands in for what is removed, where a model can read it by itself."""

import glassformer as gf
from glassformer.analysis.neutral_text import record_reference


def test_only_decoders_have_a_neutral_reference() -> None:
    writer = gf.load("writer")
    usual, other = record_reference(writer), record_reference(writer, "And God said")
    assert usual is not None and other is not None
    assert usual.labels("tokens")[0].strip("␣") in "Before"
    assert usual.residual().start.shape[1] > 80 > other.residual().start.shape[1]
    assert record_reference(gf.load("reader")) is None
    assert record_reference(gf.load("reader"), "A king.") is not None
    assert record_reference(gf.load("translator"), "A king.") is None
