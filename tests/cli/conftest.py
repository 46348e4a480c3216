import pytest

from glassformer.cli import main

VARIABLES = ("GLASSFORMER_LANG", "LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "FORCE_COLOR")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path_factory):
    """Run the command line in this process: (exit code, standard output, standard error)."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))

    def in_this_process(*words, **environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, str(value))
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return in_this_process
