"""Sentence pairs: how they are written, split and told apart."""

import gzip
import hashlib
import importlib
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from glassformer.errors import DataError
from glassformer.text import read_pairs

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "data"))
tatoeba: ModuleType = importlib.import_module("tatoeba")
sentences: ModuleType = importlib.import_module("sentences")

PEOPLE = "CC-BY 2.0 (France) Attribution: tatoeba.org #{} (ann) & #{} (bob)"


@pytest.fixture(autouse=True)
def converter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four characters of OpenCC's many: what is tested here is ours."""

    class Few:
        def convert(self, text: str) -> str:
            return text.translate(str.maketrans("們嗎說這", "们吗说这"))

    monkeypatch.setattr(sentences, "_converter", Few)


def english_for(part: str, n: int) -> list[str]:
    found = (f"Sentence {i}." for i in range(100_000))
    return [text for text in found if tatoeba.part_of(text) == part][:n]


def write_table(path: Path, pairs: list[tuple[str, str]]) -> Path:
    lines = [f"{a}\t{b}\t{PEOPLE.format(i, i + 9000)}\n" for i, (a, b) in enumerate(pairs)]
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """40 sentences for training, 3 to validate, 3 to test; and some that are like the last."""
    tests, valids = english_for("test", 3), english_for("valid", 3)
    others = [*english_for("train", 40), *valids, *tests]
    likely = [tests[0].upper() + "!!", tests[1].replace(".", "?"), valids[0].replace(" ", "  ")]
    assert all(tatoeba.part_of(text) == "train" for text in likely[1:])
    french = [(text, f"Phrase {i}!") for i, text in enumerate([*others, *likely])]
    chinese = [(text, f"句子{i}嗎?") for i, text in enumerate(others)]
    chinese += [
        (tests[2], "又一句。"),
        (tests[2], "又一句."),
        (tests[2].replace(".", " !"), "句。"),
    ]
    return {
        "zh": write_table(tmp_path / "cmn.tsv.gz", chinese),
        "fr": write_table(tmp_path / "fra.tsv.gz", french),
    }


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_nothing_held_out_is_in_the_training_data(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = tatoeba.prepare(files, out, pivot=True)
    seen = {
        part: {
            sentences.likeness(line.removeprefix("<zh> ").removeprefix("<fr> "))
            for name in ("zh", "fr")
            for line in lines(out / f"{part}.en-{name}.en")
        }
        for part in ("train", "valid", "test")
    }
    assert len(seen["train"]) == 40 and len(seen["valid"]) == 3 and len(seen["test"]) == 3
    assert not seen["train"] & seen["valid"]
    assert not seen["train"] & seen["test"]
    assert not seen["valid"] & seen["test"]
    left_out = [told["languages"][n]["left out"]["like a held-out sentence"] for n in ("zh", "fr")]
    assert left_out == [1, 3]
    held_out = {*lines(out / "test.en-fr.fr"), *lines(out / "valid.en-fr.fr")}
    assert not held_out & set(lines(out / "train.fr-zh.fr"))
    assert len(lines(out / "train.fr-zh.zh")) == told["pivot"]["train"]["pairs"] == 40


def test_the_split_is_the_hash_of_the_sentence_as_it_comes() -> None:
    for text in ("I'm sick.", "He's a DJ.", "Hi."):
        rest = int(hashlib.md5(text.lower().encode()).hexdigest(), 16) % 60
        assert tatoeba.part_of(text) == {0: "test", 1: "valid"}.get(rest, "train")
    assert [tatoeba.part_of(t) for t in ("I'M SICK.", "he's a dj.", "hi.")] == [
        "test",
        "valid",
        "train",
    ]


def test_every_translation_of_a_test_sentence_is_a_reference(
    files: dict[str, Path], tmp_path: Path
) -> None:
    tatoeba.prepare(files, tmp_path / "out")
    found = [json.loads(line) for line in lines(tmp_path / "out" / "test.en-zh.jsonl")]
    assert [len(each["references"]) for each in found] == [1, 1, 2]
    assert found[2]["source"] == english_for("test", 3)[2]
    assert found[2]["references"] == ["句子45吗？", "又一句。"]
    assert found[2]["as_written"] == ["句子45吗?", "又一句。"]


def test_aligned_files_are_what_training_and_evaluation_read(
    files: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    tatoeba.prepare(files, out)
    pairs, report = read_pairs(out / "train.en-fr.en", out / "train.en-fr.fr")
    assert len(pairs) == 40 and report.n_bad == 0
    assert pairs[0] == (english_for("train", 1)[0], "Phrase 0 !")
    pairs, _ = read_pairs(out / "test.en-zh.en", out / "test.en-zh.zh")
    assert all(source.startswith("<zh> ") for source, _ in pairs) and len(pairs) == 4


def test_the_same_files_give_the_same_bytes_and_the_summary_their_hashes(
    files: dict[str, Path], tmp_path: Path
) -> None:
    for name in ("one", "two"):
        tatoeba.prepare(files, tmp_path / name, pivot=True)
    first, second = (sorted((tmp_path / name).iterdir()) for name in ("one", "two"))
    assert [path.name for path in first] == [path.name for path in second]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
    hashes = json.loads((tmp_path / "one" / "summary.json").read_text())["files"]
    assert set(hashes) == {path.name for path in first} - {"summary.json"}
    for name, value in hashes.items():
        assert hashlib.sha256((tmp_path / "one" / name).read_bytes()).hexdigest() == value


def test_whoever_wrote_a_pair_is_named(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    tatoeba.prepare({"zh": files["zh"]}, out)
    table = gzip.decompress((out / "ATTRIBUTION.tsv.gz").read_bytes()).decode().splitlines()
    assert "CC-BY 2.0 FR" in table[0]
    rows = [line.split("\t") for line in table[2:]]
    merged = [row for row in rows if row[3] == "又一句。"]
    assert [row[0] for row in merged] == ["test"]
    assert merged[0][4] == f"{PEOPLE.format(46, 9046)} | {PEOPLE.format(47, 9047)}"
    assert lines(out / "CONTRIBUTORS.tsv")[1:] == ["ann\t48", "bob\t48"]


def test_a_zip_of_the_site_is_read(files: dict[str, Path], tmp_path: Path) -> None:
    packed = tmp_path / "fra-eng.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("_about.txt", "about")
        archive.writestr("fra.txt", gzip.decompress(files["fr"].read_bytes()))
    one = tatoeba.prepare({"fr": files["fr"]}, tmp_path / "one")
    assert tatoeba.prepare({"fr": packed}, tmp_path / "two") == one


def test_lines_without_three_columns_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "fra.tsv"
    path.write_text("Hi.\tSalut.\tann\nA lost tab.\tann\n...\t…\tann\n", encoding="utf-8")
    told = tatoeba.prepare({"fr": path}, tmp_path / "out")["languages"]["fr"]
    assert told["train"] == {"pairs": 1, "sentences": 1}
    assert told["left out"] == {"without three columns": 1, "empty": 1,
                                "the same but for marks or script": 0}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"only two\tcolumns\n", "must hold sentence pairs in three columns; it holds none"),
        (b"\xff\xfe\t\n", "must be a table of sentence pairs"),
    ],
)
def test_files_of_another_kind_are_refused(
    tmp_path: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fra.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        tatoeba.prepare({"fr": path}, tmp_path / "out")
    assert tatoeba.main(["--french", str(path), "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err


def test_a_zip_without_a_table_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("_about.txt", "about")
    with pytest.raises(DataError, match=r"must hold one table in .txt; it holds \[\]"):
        tatoeba.prepare({"fr": tmp_path / "x.zip"}, tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("J’ai gagné\u202f!", "J'ai gagné !"),
        ("Il est 2:30; et toi?", "Il est 2:30 ; et toi ?"),
        ("Quoi?! «Oui.»", "Quoi ?! « Oui. »"),
    ],
)
def test_french_is_written_in_one_way(text: str, wanted: str) -> None:
    assert sentences.french(text) == wanted
    assert sentences.french(wanted) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("你好嗎 ?", "你好吗？"),
        ("他說：「好.」", "他说：“好。”"),
        ('"走?" "好, 走."', "“走？”“好，走。”"),
        ("失業率為3.4％, 10:30 .", "失業率為3.4%，10:30。"),
        ("他是一个 DJ 。", "他是一个DJ。"),
        ("看著這個著名的人\u200b", "看着这個著名的人"),
        ('一个"', '一个"'),
    ],
)
def test_chinese_is_written_in_one_way(text: str, wanted: str) -> None:
    assert sentences.chinese(text) == wanted
    assert sentences.chinese(wanted) == wanted


def test_likeness_sees_letters_and_digits_alone() -> None:
    assert sentences.likeness("It's 10:30, OK?") == sentences.likeness("its 1030 ok")
    assert sentences.likeness("a b") != sentences.likeness("ab")
