"""Files that are the same bytes whenever they are made, and a summary with their hashes."""

import gzip
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class Outputs:
    """A folder of what a script writes; `finish` adds summary.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashes: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def lines(self, name: str, lines: Iterable[str]) -> None:
        """A text file, or a compressed one where the name ends in .gz."""
        content = "".join(f"{line}\n" for line in lines).encode()
        if name.endswith(".gz"):
            content = gzip.compress(content, mtime=0)  # the time would be in the file
        (self.folder / name).write_bytes(content)
        self.hashes[name] = hashlib.sha256(content).hexdigest()

    def finish(self, summary: dict[str, Any], sources: Iterable[Path]) -> None:
        """Write what was read, what was written, and what the script has to tell."""
        told = {
            **summary,
            "sources": {path.name: sha256(path) for path in sources},
            "files": self.hashes,
        }
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        (self.folder / "summary.json").write_text(text, encoding="utf-8")


def sha256(path: Path) -> str:
    """The hash of a file, or of all files of a folder in the order of their names."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    total = hashlib.sha256()
    for each in sorted(p for p in path.rglob("*") if p.is_file()):
        total.update(f"{each.relative_to(path)} {sha256(each)}\n".encode())
    return total.hexdigest()
