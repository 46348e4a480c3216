"""SHA256SUMS: the hash of every file in a folder, as `sha256sum --check` reads it.

    9f86d081884c7d65…  model-0.safetensors
    2c26b46b68ffc68f…  state.json

Readers accept only listed files, so a flipped bit is detected wherever it is: in a file, in its
name, or in its hash.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from glassformer.errors import CheckpointError
from glassformer.storage import atomic_file, read_regular, sha256

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n\r\0]+)")


def checksum_lines(folder: Path, names: Iterable[str]) -> str:
    """The lines for these files."""
    return "".join(f"{sha256(folder / name)}  {name}\n" for name in names)


def write_checksums(folder: Path, lines: str) -> None:
    """Write the list of a folder."""
    with atomic_file(folder / SUMS) as new:
        new.write_text(lines, "utf-8", newline="")


def find_damage(folder: Path, concerns: Callable[[str], bool] = lambda _: True) -> str | None:
    """What is wrong with the files for which `concerns` is true; None if nothing is.

    Each must exist and match its hash, and no unlisted file of that kind may exist.
    """
    try:
        sums = {name: digest for name, digest in read_checksums(folder).items() if concerns(name)}
        if not sums:
            return f"{SUMS} lists no files"
        for name, digest in sums.items():
            path = folder / name
            if not path.is_file():
                return f"{name} is not a file" if path.exists() else f"{name} is missing"
            if sha256(path) != digest:
                return f"{name} does not match its hash in {SUMS}"
        there = {p.name for p in folder.iterdir() if not p.name.startswith(".")}
    except CheckpointError as error:
        return str(error).removesuffix(".")
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    strange = sorted(name for name in there - sums.keys() - {SUMS} if concerns(name))
    return f"{strange[0]} is not listed in {SUMS}" if strange else None


def read_checksums(folder: Path) -> dict[str, str]:
    """The hashes by file name."""
    path = folder / SUMS
    if not path.is_file():
        raise CheckpointError(f"{SUMS} is missing.")
    try:
        lines = read_regular(path).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise CheckpointError(f"{SUMS} is not text.") from None
    found = [_LINE.fullmatch(line) for line in lines[:-1]]
    if lines[-1] or not all(found):
        raise CheckpointError(f"{SUMS} is not a list of hashes.")
    return {match[2]: match[1] for match in found if match}
