"""Releases of vLLM that were not tested are refused, with both versions named."""

import logging

import pytest

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm import plugin
from glassformer.tracing.engines.vllm.version import check_version, is_tested


def test_tested_releases_pass() -> None:
    for version in ("0.32", "0.32.0", "0.32.7+cpu", "0.32.1rc1"):
        check_version(version)


@pytest.mark.parametrize("version", ["0.31.9", "0.33.0", "1.0", "0.320.1"])
def test_other_releases_are_refused(version: str) -> None:
    assert not is_tested(version)
    with pytest.raises(TraceError, match=rf"tested with vLLM 0\.32; installed is vLLM {version}"):
        check_version(version)


def test_absence_is_told() -> None:
    with pytest.raises(TraceError, match=r"tested with vLLM 0\.32; installed is none\."):
        check_version(None)


def test_plug_in_leaves_other_releases_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin, "find_version", lambda: "0.29.1")
    with caplog.at_level(logging.WARNING):
        plugin.register()
    assert "watches vLLM 0.32; this is vLLM 0.29.1" in caplog.text


def test_fault_of_the_plug_in_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin, "find_version", lambda: "0.32.0")
    monkeypatch.setattr(plugin, "import_module", lambda name: {}[name])
    with caplog.at_level(logging.WARNING):
        plugin.register()
    assert "glassformer cannot watch this vLLM: KeyError" in caplog.text
