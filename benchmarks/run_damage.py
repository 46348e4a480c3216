"""Damage for the folder of a run: random bytes, missing pieces, wrong kinds, wrong names.

Each kind takes a folder and a random generator, does one thing, and says what it did and which
paths it touched, so that it can be undone from an undamaged copy.
"""

import hashlib
import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BEFORE, LAST = "00000009", "00000010-stop"  # the newest checkpoints of the run that is damaged


@dataclass(frozen=True)
class Damage:
    """What was done, to which paths, and whether a run that reads them must notice."""

    told: str
    paths: tuple[Path, ...]  # relative to the folder
    must_notice: bool = True


Kind = Callable[[Path, random.Random], Damage]


def files(folder: Path) -> list[Path]:
    """Every file of a run but its lock, the small ones as often as the large ones."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != ".lock")


def is_read(path: Path) -> bool:
    """Whether a resumed run depends on a file: all but older checkpoints and reports."""
    first = path.parts[0]
    if first == "checkpoints":
        return len(path.parts) > 1 and path.parts[1] == LAST
    return first in {"tokens", "tokenizer", "recipe.toml", "essence.json", "best", "model"}


def flip_bit(folder: Path, rng: random.Random) -> Damage:
    return _flip(folder, rng.choice([p for p in files(folder) if p.stat().st_size]), rng)


def flip_bit_of_last(folder: Path, rng: random.Random) -> Damage:
    return _flip(folder, rng.choice(files(folder / "checkpoints" / LAST)), rng)


def flip_bit_of_data(folder: Path, rng: random.Random) -> Damage:
    part = rng.choice(["tokens", "tokenizer"])
    return _flip(folder, rng.choice(files(folder / part)), rng)


def flip_bit_of_text(folder: Path, rng: random.Random) -> Damage:
    name = rng.choice(["recipe.toml", "essence.json", "best/config.json", "model/config.json"])
    return _flip(folder, folder / name, rng)


def truncate(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice([p for p in files(folder) if p.stat().st_size > 1])
    size = rng.randrange(path.stat().st_size)
    os.truncate(path, size)
    return _damage(folder, path, f"cut off after {size} bytes")


def empty(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice(files(folder))
    path.write_bytes(b"")
    return _damage(folder, path, "emptied")


def append(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice(files(folder))
    with path.open("ab") as file:
        file.write(rng.randbytes(rng.randrange(1, 40)))
    return _damage(folder, path, "bytes appended")


def zero_block(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice([p for p in files(folder) if p.suffix == ".safetensors"])
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data))
    block = data[start : start + 64]
    data[start : start + 64] = bytes(len(block))
    path.write_bytes(data)
    return _damage(folder, path, f"64 bytes zeroed at {start}", any(block))


def delete(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice(files(folder))
    path.unlink()
    return _damage(folder, path, "deleted")


def delete_folder(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice([p for p in sorted(folder.rglob("*")) if p.is_dir()])
    shutil.rmtree(path)
    whole = path.name in {LAST, "checkpoints", "best", "model"}  # as if it had never been there
    return _damage(folder, path, "deleted", not whole)


def folder_instead(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice(files(folder))
    path.unlink()
    path.mkdir()
    return _damage(folder, path, "replaced by a folder")


def pipe_instead(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice(files(folder))
    path.unlink()
    os.mkfifo(path)
    return _damage(folder, path, "replaced by a named pipe")


def socket_instead(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice([p for p in files(folder) if p.parent == folder])
    path.unlink()
    before = Path.cwd()
    os.chdir(folder)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(before)
    return _damage(folder, path, "replaced by a socket")


def file_instead(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice([p for p in sorted(folder.rglob("*")) if p.is_dir()])
    shutil.rmtree(path)
    path.write_text("not a folder\n")
    return _damage(folder, path, "replaced by a file")


def lost_link(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice(files(folder))
    path.unlink()
    path.symlink_to("nowhere")
    return _damage(folder, path, "replaced by a link to nothing")


def swap(folder: Path, rng: random.Random) -> Damage:
    """One file of the last checkpoint gets the content of the one before."""
    name = rng.choice(["model-0.safetensors", "optimizer-0.safetensors", "state.json"])
    path = folder / "checkpoints" / LAST / name
    shutil.copyfile(folder / "checkpoints" / BEFORE / name, path)
    return _damage(folder, path, f"replaced by that of {BEFORE}")


def wrong_values(folder: Path, rng: random.Random) -> Damage:
    """A value of another type in state.json, with hashes that fit."""
    path = folder / "checkpoints" / LAST / "state.json"
    plain = json.loads(path.read_text())
    place = plain if rng.random() < 0.2 else plain[rng.choice(["training", "metrics"])]
    name = rng.choice(sorted(place))
    old = place[name]
    strange: list[Any] = [None, "x", [], {"a": 1}, -3, 1e400, [[["deep"]]], True]
    place[name] = rng.choice([value for value in strange if value != old])
    path.write_text(json.dumps(plain))
    told = f"{path.relative_to(folder)}: {name} = {place[name]!r}, hashes recomputed"
    return Damage(told, _signed(folder, path), must_notice=False)


def deep_json(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice([p for p in files(folder) if p.suffix in (".json", ".jsonl", ".toml")])
    path.write_text("[" * 100_000)
    damage = _damage(folder, path, "100,000 brackets")
    if path.parent.name == LAST:
        return Damage(damage.told, _signed(folder, path))
    return damage


def not_utf8(folder: Path, rng: random.Random) -> Damage:
    path = rng.choice([p for p in files(folder) if p.suffix in (".json", ".jsonl", ".toml", "")])
    path.write_bytes(b"\xff\xfe" + path.read_bytes())
    return _damage(folder, path, "begins with bytes that are not UTF-8")


def stray_names(folder: Path, rng: random.Random) -> Damage:
    names = ["00000099", "00000099-stop", "99999999", "123", "notes.txt", "-stop", "00000010-stop~"]
    path = folder / "checkpoints" / rng.choice(names)
    path.write_text("mine\n") if rng.random() < 0.5 else path.mkdir()
    return _damage(folder, path, "added", must=False)


def later_copy(folder: Path, rng: random.Random) -> Damage:
    path = folder / "checkpoints" / rng.choice(["00000012", "00000015-stop"])
    shutil.copytree(folder / "checkpoints" / BEFORE, path)
    return Damage(f"{path.name}: a copy of {BEFORE}", (path.relative_to(folder),))


def torn_metrics(folder: Path, rng: random.Random) -> Damage:
    del rng
    path = folder / "metrics.jsonl"
    with path.open("ab") as file:
        file.write(b'{"step": 11, "epoch": 1, "lo')
    return _damage(folder, path, "half a line at its end", must=False)


def wrong_metrics(folder: Path, rng: random.Random) -> Damage:
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines()
    strange = ["null", '{"step": "x"}', '{"step": 9e99}', "{", '{"no": 1}', '{"step": 2}']
    lines.insert(rng.randrange(len(lines) - 2), rng.choice(strange))
    path.write_text("\n".join(lines) + "\n")
    return _damage(folder, path, "a line that is no measurement")


KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        *(flip_bit, flip_bit_of_last, flip_bit_of_data, flip_bit_of_text, truncate, empty, append),
        *(zero_block, delete, delete_folder, folder_instead, pipe_instead, socket_instead),
        *(file_instead, lost_link, swap, wrong_values, deep_json, not_utf8, stray_names),
        *(later_copy, torn_metrics, wrong_metrics),
    )
}


def undo(folder: Path, undamaged: Path, damage: Damage) -> None:
    """Put back what was damaged."""
    for path in damage.paths:
        place, old = folder / path, undamaged / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        if old.is_dir():
            shutil.copytree(old, place)
        elif old.exists():
            shutil.copyfile(old, place)


def _flip(folder: Path, path: Path, rng: random.Random) -> Damage:
    data = bytearray(path.read_bytes())
    before = bytes(data)
    i, bit = rng.randrange(len(data)), rng.randrange(8)
    data[i] ^= 1 << bit
    path.write_bytes(data)
    return _damage(folder, path, f"bit {bit} of byte {i} flipped", not _means(before, bytes(data)))


def _means(before: bytes, after: bytes) -> bool:
    """Whether JSON says the same as before: 1E-05 is 1e-05."""
    try:
        return json.loads(before) == json.loads(after)
    except ValueError:
        return False


def _damage(folder: Path, path: Path, told: str, must: bool = True) -> Damage:
    where = path.relative_to(folder)
    return Damage(f"{where}: {told}", (where,), must and is_read(where))


def _signed(folder: Path, path: Path) -> tuple[Path, Path]:
    """Make the hash of a changed file fit, as an attacker would; both paths that were touched."""
    sums = path.parent / "SHA256SUMS"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    lines = [line for line in sums.read_text().splitlines() if not line.endswith(path.name)]
    sums.write_text("\n".join([*lines, f"{digest}  {path.name}"]) + "\n")
    return path.relative_to(folder), sums.relative_to(folder)
