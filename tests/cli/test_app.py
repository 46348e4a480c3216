import os
import pty
import re
import subprocess
import sys

import pytest

import glassformer
from glassformer.cli import app, demo_screens
from glassformer.cli.app import COMMANDS, take_language

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_without_a_command_it_shows_the_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == run("--help")[1] == run("-h")[1]
    assert "glassformer COMMAND [--lang en|zh] [--version]" in out
    for command in (
        "demo",
        "mask",
        "models",
        "shapes",
        "generate",
        "translate",
        "fill",
        "embed",
        "convert",
    ):
        assert f"\n  {command} " in out


@pytest.mark.parametrize(
    "words", [["--help"], ["demo", "--help"], ["mask", "-h"], ["shapes", "-h"]]
)
def test_help_is_in_the_language_asked_for(run, words):
    english = run(*words)
    chinese = run(*words, "--lang", "zh")
    assert (english[0], chinese[0]) == (0, 0)
    assert "Usage" in english[1] and "show this help" in english[1]
    assert "用法" in chinese[1] and "显示这份帮助" in chinese[1]
    assert not re.search("[\u4e00-\u9fff]", english[1])


@pytest.mark.parametrize("width", [60, 100])
def test_help_keeps_to_the_width(run, width):
    _, out, _ = run("mask", "--help", COLUMNS=width)
    assert max(map(len, out.splitlines())) <= width


@pytest.mark.parametrize("command", [c.__name__.rpartition(".")[2] for c in COMMANDS])
def test_help_leaves_room_for_what_options_mean(run, command):
    _, out, _ = run(command, "--help", COLUMNS=80)
    assert not re.findall(r"^ {50,}\S", out, re.M), "the names of options take most of the screen"


def test_version(run):
    assert run("--version") == (0, f"glassformer {glassformer.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["demo"], (None, ["demo"])),
        (["--lang", "zh", "demo"], ("zh", ["demo"])),
        (["demo", "--lang=zh", "--json"], ("zh", ["demo", "--json"])),
        (["--lang", "en", "--lang", "zh"], ("zh", [])),
        (["demo", "--lang"], (None, ["demo", "--lang"])),
        (["mask", "--", "--lang"], (None, ["mask", "--", "--lang"])),
        (["--lang="], ("", [])),
    ],
)
def test_the_language_may_stand_anywhere(words, rest):
    assert take_language(words) == rest


def test_the_surroundings_choose_the_language(run):
    assert "画出" in run("--help", LANG="zh_CN.UTF-8")[1]
    assert "Draw" in run("--help", GLASSFORMER_LANG="en")[1]
    assert "画出" in run("--help", "--lang", "zh")[1]


@pytest.mark.parametrize(
    ("words", "environ"),
    [(["--lang", "fr"], {}), (["demo", "--lang="], {}), (["demo"], {"GLASSFORMER_LANG": "fr"})],
)
def test_an_unknown_language_is_one_line(run, words, environ):
    code, out, err = run(*words, **environ)
    assert (code, out) == (2, "")
    assert err.startswith("glassformer: The language must be en (English) or zh (中文); got ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "nope"),
        (["demo", "--nope"], "--nope"),
        (["--nope"], "--nope"),
        (["mask"], "EXPRESSION"),
        (["demo", "--lang"], "--lang"),
        (["mask", "causal", "--queries", "0"], "--queries"),
        (["mask", "causal", "--keys", "many"], "--keys"),
    ],
)
def test_what_typer_does_not_know_is_exit_code_2(run, words, said):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err and "Traceback" not in err


def test_an_interruption_ends_with_one_line(run, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_screens, "show", interrupted)
    assert run("demo") == (130, "", "glassformer: Interrupted.\n")
    monkeypatch.setattr(app, "build", interrupted)
    assert run("demo") == (130, "", "glassformer: Interrupted.\n")
    assert run("demo", GLASSFORMER_LANG="zh")[2] == "glassformer: 已中断。\n"


def test_an_interruption_while_modules_are_imported_ends_with_one_line(tmp_path):
    """Ctrl-C in the first moments reaches an import, not a command."""
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a parent may ignore it
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'rich.console': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from glassformer.cli import main\n"
        "sys.exit(main(['demo', '--help']))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "glassformer: Interrupted.\n"


def test_a_sentence_over_several_lines_becomes_one(run, monkeypatch):
    def wrong(*_):
        raise glassformer.GlassformerError("first\n  second")

    monkeypatch.setattr(demo_screens, "show", wrong)
    assert run("demo") == (2, "", "glassformer: first second\n")


def command(*words, **environ):
    """The real command in a process of its own, its output a pipe."""
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environ}
    return subprocess.run(
        [sys.executable, "-m", "glassformer", *words],
        capture_output=True,
        encoding="utf-8",
        env=environ,
        check=False,
    )


def test_a_pipe_gets_no_colour_codes_and_no_trailing_blanks():
    result = command("demo")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


def test_a_terminal_gets_the_same_text_in_colour():
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "60"}
    words = [sys.executable, "-m", "glassformer", "mask", "causal & window(2)"]
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environ) as process:
        assert process.wait() == 0
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    os.close(ours)
    assert "\x1b[" in shown
    plain = [line.rstrip() for line in ANSI.sub("", shown).splitlines()]
    piped = command("mask", "causal & window(2)", COLUMNS="60")
    assert plain == piped.stdout.splitlines()


def test_an_encoding_without_our_marks_is_no_reason_to_fail():
    result = command("mask", "causal", "--lang", "zh", PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, "")
    assert "? ? ?" in result.stdout


def test_the_command_starts_without_heavy_companions():
    code = (
        "import sys\n"
        "from glassformer.cli import main\n"
        "try: main(['demo', '--json'])\n"
        "except SystemExit: pass\n"
        "heavy = {'transformers', 'matplotlib', 'einops', 'torch._dynamo', 'torch._inductor'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
