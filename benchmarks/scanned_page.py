"""The page of a scan: every folder is exact, or refused, or was not run; each with its reason."""

import re
from collections import Counter, defaultdict
from typing import Any

Record = dict[str, Any]

KINDS = {
    "exact": "exact",
    "other": "refused: attention that is not a softmax over keys",
    "none": "refused: a model without attention",
    "ours": "refused: softmax over keys that is not explained",
    "not run": "not run: the tester is missing, or fails by itself",
}
HEAD = """# Architectures of transformers that `gf.watch` sees

Every model folder of transformers {transformers}, each through its own tiny testers (those of
{testers}), with sdpa and with eager attention where it has them. *Exact* means, for every site of
every model class run:

- outputs with and without watching are equal to the bit, on the same backend;
- weights derived from the trace agree with those that the model's own eager attention returns (*by
  weights*), to 1e-5 in float32, or 1e-8 in float64 where float32 amplifies rounding; where eager
  attention returns none, or computes something else than sdpa, derived weights times v agree with
  what the model computed at that site (*by output*), to 1e-5 of the largest value.

Models have random weights of standard deviation 0.3, so that no head looks everywhere alike; 0.1 or
the tester's own where that overflows. Rows in which nothing is open have no weights and are left
out. Of each tester one class is run: the first that generates, or the bare model. A module that
asks for attention more than once in a pass has a site for each.

Written by `python benchmarks/scan_architectures.py --tests CHECKOUT/tests` with torch {torch};
a test compares its counts with its rows, and watches tiny models of its own against it.
"""


def write_page(records: list[Record], versions: dict[str, str]) -> str:
    """The whole page; the same records give the same page, in whatever order they come."""
    folders: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        folders[record["folder"]].append(record)
    kinds = {name: kind_of(found) for name, found in sorted(folders.items())}
    parts = [HEAD.format(**versions), _counts(folders, kinds)]
    parts.append("## Exact\n")
    parts.append(_table(["folder", "models", "sdpa", "eager", "sites", "by weights", "by output"]))
    parts[-1] += "".join(_exact_row(n, folders[n]) for n, kind in kinds.items() if kind == "exact")
    for kind in ("other", "none", "ours", "not run"):
        names = [name for name, each in kinds.items() if each == kind]
        parts.append(f"## {KINDS[kind][0].upper()}{KINDS[kind][1:]}\n")
        parts.append(_table(["folder", "models", "exact sites", "reason"]))
        parts[-1] += "".join(_refused_row(name, folders[name]) for name in names)
    return "\n".join(parts)


def kind_of(found: list[Record]) -> str:
    """One of KINDS, for all records of a folder together."""
    reasons = [reason for record in found for reason in reasons_of(record)]
    statuses = {record["status"] for record in found}
    if statuses & {"wrong", "raised"} or any(_is_ours(reason) for reason in reasons):
        return "ours"
    if any(_is_other(reason) for reason in reasons):
        return "other"
    if "exact" in statuses:
        return "exact"
    return "none" if "refused" in statuses else "not run"


def reasons_of(record: Record) -> list[str]:
    """Why a record is not exact; empty if it is."""
    if record["status"] in ("exact", "absent"):
        return []
    return (
        sorted(set(record["refusals"].values())) if record.get("refusals") else [record["reason"]]
    )


def _is_other(reason: str) -> bool:
    words = ("computes no softmax", "does not multiply a softmax", "rows of the softmax are cut")
    return any(word in reason for word in words)


def _is_ours(reason: str) -> bool:
    words = ("could not", "internal error", "must", "is not known here", "something else with q")
    return any(word in reason for word in words) and not _is_other(reason)


def _counts(folders: dict[str, list[Record]], kinds: dict[str, str]) -> str:
    rows = []
    for kind, title in KINDS.items():
        names = [name for name, each in kinds.items() if each == kind]
        found = [record for name in names for record in folders[name]]
        exact = sum(record["status"] == "exact" for record in found)
        rows.append((title, len(names), exact, sum(map(_n_exact, found))))
    rows.append(("all", *(sum(row[i] for row in rows) for i in (1, 2, 3))))
    lines = (f"| {title} | {n} | {exact} | {sites} |\n" for title, n, exact, sites in rows)
    return _table(["", "folders", "exact records", "exact sites"]) + "".join(lines)


def _n_exact(record: Record) -> int:
    return record.get("sites", 0) if record["status"] in ("exact", "refused") else 0


def _exact_row(name: str, found: list[Record]) -> str:
    done = [record for record in found if record["status"] == "exact"]
    models = sorted({record["model"] for record in done})
    by = Counter()
    for record in done:
        by.update(record["by"])
    has = {record["implementation"] for record in done}
    shown = ["yes" if each in has else "–" for each in ("sdpa", "eager")]
    notes = [f"not {m}: {why}" for m, why in _left_out(found)]
    listed = ", ".join(models) + (f" ({'; '.join(notes)})" if notes else "")
    n = sum(by.values())
    return f"| {name} | {listed} | {' | '.join(shown)} | {n} | {by['weights']} | {by['output']} |\n"


def _left_out(found: list[Record]) -> list[tuple[str, str]]:
    """Models of an exact folder that were not run, or have no attention."""
    left = {
        (r.get("model") or r.get("tester", ""), _shortened(why))
        for r in found
        for why in reasons_of(r)
    }
    return sorted(left)


def _refused_row(name: str, found: list[Record]) -> str:
    models = sorted({record["model"] for record in found if record.get("model")})
    reasons = sorted({_shortened(reason) for record in found for reason in reasons_of(record)})
    n = sum(map(_n_exact, found))
    return f"| {name} | {', '.join(models)} | {n} | {'; '.join(reasons)} |\n"


def _shortened(reason: str) -> str:
    reason = re.sub(r"\s+", " ", reason).replace("|", "/").strip().rstrip(".:")
    reason = re.sub(r"/(?:tmp|root|home|work)\S*", "…", reason)
    return reason if len(reason) <= 220 else f"{reason[:219]}…"


def _table(columns: list[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
