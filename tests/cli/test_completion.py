"""Shell completion: commands, options and names, without loading torch."""

import os
import subprocess
import sys

import pytest

from glassformer.cli.known_names import preset_names
from glassformer.models import PRESETS

CODE = (
    "import sys; sys.argv = ['glassformer']\n"
    "from glassformer.cli import main\n"
    "code = main()\n"
    "sys.exit('torch was loaded' if 'torch' in sys.modules else code)"
)


def complete(line):
    """What Tab offers at the end of a line, as bash asks for it."""
    environ = {
        **os.environ,
        "_GLASSFORMER_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    command = [sys.executable, "-c", CODE]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("glassformer sha", ["shapes"]),
        ("glassformer look --no", ["--no-first-key"]),
        ("glassformer fill --model ", ["reader", "storyteller", "translator", "writer"]),
        ("glassformer models w", ["writer"]),
        ("glassformer lab sc", ["scale"]),
        ("glassformer practice run split_", ["split_heads"]),
        ("glassformer learn we", ["weights"]),
        ("glassformer shapes gpt-3-1", ["gpt-3-13b", "gpt-3-175b"]),
        ("glassformer shapes tran", ["transformer-base", "transformer-big", "translator"]),
        ("glassformer shapes --family e", ["encoder", "encoder_decoder"]),
        ("glassformer train --from w", ["writer"]),
        ("glassformer convert writer x --layout g", ["gguf", "glassformer"]),
        ("glassformer train --set model.preset=laptop-d", ["model.preset=laptop-decoder"]),
    ],
)
def test_tab_offers_commands_options_and_names(line, offered):
    assert complete(line) == offered


def test_the_options_are_explained_in_both_languages(run):
    assert "install completion of commands" in " ".join(run("--help")[1].split())
    assert "安装命令和名称的自动补全" in run("--help", "--lang", "zh")[1]


def test_the_presets_are_those_of_the_library():
    assert preset_names() == list(PRESETS)
