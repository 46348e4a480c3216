"""`glassformer --version`, and all that a bug report needs as JSON."""

import json
import platform

import pytest
import torch

import glassformer as gf


def test_the_version_alone(run):
    assert run("--version") == (0, f"glassformer {gf.__version__}\n", "")


@pytest.mark.parametrize("words", [("--version", "--json"), ("--json", "--version")])
def test_what_a_bug_report_needs(run, words):
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    plain = json.loads(out)
    assert plain["glassformer"] == gf.__version__
    assert plain["python"] == platform.python_version()
    assert plain["torch"] == torch.__version__
    assert plain["extras"]["figures"]["matplotlib"]
    assert "transformers" in plain["extras"]["huggingface"]
    assert not {"dev", "docs"} & set(plain["extras"])


@pytest.mark.plain
def test_json_alone_is_refused(run):
    code, out, err = run("--json")
    assert (code, out) == (
        2,
        "",
    ) and "--json before a command needs --version. Otherwise put it after the command." in err
