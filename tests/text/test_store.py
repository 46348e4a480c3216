"""Token stores: what is written comes back, all of it or nothing; damage is refused."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from glassformer.errors import DataError
from glassformer.text import TokenStore, TokenTable, write_store, write_table

ids = st.lists(st.integers(0, 99), max_size=9)


@given(sequences=st.lists(ids, max_size=20), vocab_size=st.sampled_from([100, 1 << 16, 70_000]))
def test_sequences_come_back(sequences: list[list[int]], vocab_size: int, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("store") / "a.tokens"
    write_store(path, sequences, vocab_size)
    store = TokenStore.open(path)
    assert [sequence.tolist() for sequence in store] == sequences
    assert len(store) == len(sequences)
    assert store.tokens.tolist() == [token for sequence in sequences for token in sequence]
    assert store.lengths.tolist() == [len(sequence) for sequence in sequences]
    assert store.tokens.dtype == (np.uint16 if vocab_size <= 1 << 16 else np.uint32)


@given(rows=st.lists(st.tuples(ids, ids, ids), min_size=1, max_size=20))
def test_rows_come_back(rows: list, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("table") / "a.tokens"
    sizes = {"source": 100, "target": 1 << 20, "label": 100}
    write_table(path, rows, sizes, notes=lambda: {"n": len(rows), "name": "猫"})
    table = TokenTable.open(path)
    assert len(table) == len(rows) and list(table.columns) == list(sizes)
    for i, row in enumerate(rows):
        assert tuple(sequence.tolist() for sequence in table[i]) == row
    assert table.lengths.tolist() == [list(map(len, row)) for row in rows]
    assert table.notes == {"n": len(rows), "name": "猫"}


def test_a_sequence_is_a_view_of_the_file(tmp_path: Path) -> None:
    store = write_store(tmp_path / "a", [[1, 2, 3], [4]], 10)
    assert np.shares_memory(store[0], store.tokens) and not store[0].flags.writeable
    assert store[-1].tolist() == [4]
    for i in (2, -3):
        with pytest.raises(IndexError, match=f"2 sequences has no number {i}"):
            store[i]


def test_the_largest_ids(tmp_path: Path) -> None:
    assert write_store(tmp_path / "a", [[65535]], 65536)[0].tolist() == [65535]
    assert write_store(tmp_path / "b", [[65536]], 65537)[0].tolist() == [65536]


def test_more_than_is_held_in_memory(tmp_path: Path) -> None:
    sequences = [np.arange(i % 7, dtype=np.int64) for i in range(300_000)]
    store = write_store(tmp_path / "a", sequences, 7)
    assert len(store) == 300_000 and store[299_999].tolist() == list(range(299_999 % 7))
    assert (store.tokens == np.concatenate(sequences)).all()


def test_other_programs_can_read_it(tmp_path: Path) -> None:
    write_table(tmp_path / "a", [([1, 2], [3]), ([], [4, 5, 6])], {"x": 9, "y": 99_999})
    with safe_open(tmp_path / "a", "np") as file:
        assert file.get_tensor("x.tokens").tolist() == [1, 2]
        assert file.get_tensor("y.tokens").tolist() == [3, 4, 5, 6]
        assert file.get_tensor("y.offsets").tolist() == [0, 1, 4]


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[int] = []
    write_store(tmp_path / "a", ([i % 5] for i in range(2500)), 5, progress=told.append)
    assert told == [1000, 2000, 2500]


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    write_store(tmp_path / "a", [[1]], 5)

    def broken():
        yield from [[2]] * 5000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_store(tmp_path / "a", broken(), 5)
    assert TokenStore.open(tmp_path / "a")[0].tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_kill_leaves_no_half_file(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from glassformer.text import write_store\n"
        "def ids():\n"
        "    yield from ([1, 2, 3] for _ in range(200_000))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_store(sys.argv[1], ids(), 5)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a")], check=False)
    assert killed.returncode == -9 and not (tmp_path / "a").exists()


@given(data=st.data())
def test_a_flipped_bit_is_found(data, tmp_path_factory) -> None:
    """Unless it is one that means nothing, such as a blank that fills the header up."""
    path = tmp_path_factory.mktemp("damage") / "a"
    rows = [([1, 2, 3], [4]), ([5], [6, 7])]
    write_table(path, rows, {"x": 9, "y": 99_999}, notes=lambda: {"made": "from"})
    raw = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw)
    try:
        table = TokenTable.open(path)
    except DataError:
        return
    assert [tuple(s.tolist() for s in table[i]) for i in range(2)] == rows
    assert table.notes == {"made": "from"} and list(table.columns) == ["x", "y"]


@pytest.mark.plain
def test_every_shorter_file_is_refused(tmp_path: Path) -> None:
    write_store(tmp_path / "a", [[1, 2, 3], [4]], 10)
    whole = (tmp_path / "a").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "b").write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"b (is not a token store|must have \d+ bytes)"):
            TokenStore.open(tmp_path / "b", verify=False)
    (tmp_path / "b").write_bytes(whole + b"\0")
    with pytest.raises(DataError, match=rf"must have {len(whole)} bytes; it has {len(whole) + 1}"):
        TokenStore.open(tmp_path / "b")


@pytest.mark.plain
def test_files_that_are_refused(tmp_path: Path) -> None:
    write_store(tmp_path / "a", [[1, 2, 3], [4]], 10)
    raw = bytearray((tmp_path / "a").read_bytes())
    raw[-1] ^= 1
    (tmp_path / "a").write_bytes(raw)
    with pytest.raises(DataError, match=r"a is damaged: its content does not match its hash"):
        TokenStore.open(tmp_path / "a")
    assert len(TokenStore.open(tmp_path / "a", verify=False)) == 2
    raw[-16] = 200  # the second offset, before four ids of two bytes
    (tmp_path / "a").write_bytes(raw)
    with pytest.raises(DataError, match=r"the offsets of 'tokens' are inconsistent"):
        TokenStore.open(tmp_path / "a", verify=False)
    with pytest.raises(DataError, match=r"none cannot be read: No such file"):
        TokenStore.open(tmp_path / "none")
    write_table(tmp_path / "two", [([1], [2])], {"x": 5, "y": 5})
    with pytest.raises(DataError, match=r"has one column; .*two has x, y"):
        TokenStore.open(tmp_path / "two")
    for nonsense in (b"\xff" * 99, b"\x02" + b"\0" * 7 + b"[]", b"\x02" + b"\0" * 7 + b"{}"):
        (tmp_path / "b").write_bytes(nonsense)
        with pytest.raises(DataError, match=r"b is not a token store"):
            TokenStore.open(tmp_path / "b")


@pytest.mark.plain
@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["x.tokens"].update(shape=[2**60]),
        lambda h: h["x.tokens"].update(shape="x"),
        lambda h: h["x.tokens"].pop("shape"),
        lambda h: h["x.tokens"].update(dtype=["U16"]),
        lambda h: h["x.tokens"].update(dtype="I64"),
        lambda h: h["x.tokens"].update(data_offsets=h["x.offsets"]["data_offsets"]),
        lambda h: h["x.tokens"].update(data_offsets=[-8, 0]),
        lambda h: h.update({"x.tokens": 3}),
        lambda h: h.update(more=h["x.tokens"]),
        lambda h: h["__metadata__"].update(columns="[3]"),
        lambda h: h["__metadata__"].update(columns="[" * 9000),
        lambda h: h["__metadata__"].update(notes="[]"),
        lambda h: h["__metadata__"].update(version=1),
        lambda h: h.update(__metadata__=[]),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, change) -> None:
    """Also by those who do not read the hash."""
    write_table(tmp_path / "a", [([1, 2], [3])], {"x": 5, "y": 5})
    raw = (tmp_path / "a").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])
    with pytest.raises(DataError, match=r"a is not a token store: "):
        TokenTable.open(tmp_path / "a", verify=False)


@pytest.mark.plain
def test_tokens_beyond_a_vocabulary(tmp_path: Path) -> None:
    table = write_table(tmp_path / "a", [([1, 7], [3])], {"x": 8, "y": 8})
    table.check_tokens(8, tmp_path / "a")
    with pytest.raises(DataError, match=r"a must hold tokens below 7, .*; x has 7"):
        table.check_tokens(7, tmp_path / "a")


@pytest.mark.plain
def test_tokens_that_cannot_be_written(tmp_path: Path) -> None:
    for wrong in (10, -1, 1 << 40):
        with pytest.raises(DataError, match=rf"'tokens' must be below vocab_size=10; got {wrong}"):
            write_store(tmp_path / "a", [[1], [wrong]], 10)
    with pytest.raises(DataError, match=r"at least one column; got none"):
        write_table(tmp_path / "a", [], {})
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"could not be written"):
        write_store(tmp_path / "file" / "a", [[1]], 10)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.plain
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(tmp_path: Path, monkeypatch) -> None:
    from glassformer.text import spool

    full = Path("/dev/full").open("r+b", 0)  # noqa: SIM115 (the spool closes it)
    monkeypatch.setattr(spool.tempfile, "TemporaryFile", lambda dir: full)
    with pytest.raises(DataError, match=r"a could not be written: No space left on device"):
        write_store(tmp_path / "a", [[1]], 10)
    assert not list(tmp_path.iterdir())
