"""What can happen to files: accidents, and values that somebody chose.

A sample is a dictionary of contents by relative name. Damage returns another one, a note that says
what was done, and how many bytes of weights it may have changed; None where that is not limited.
"""

import copy
import json
import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Content = "bytes | Special"
Files = dict[str, Any]


@dataclass(frozen=True)
class Special:
    """Something in the place of a file: a link, a pipe, a folder."""

    kind: str
    target: str = ""


SPECIALS = [
    Special("fifo"), Special("folder"), Special("link", "/dev/zero"), Special("link", "loop"),
    Special("link", "../outside/secret"), Special("link", "nowhere"),
]  # fmt: skip


@dataclass(frozen=True)
class Damaged:
    files: Files
    note: str
    n_bytes: int | None


TEXTS = [
    "", "x", "x" * 5000, "x" * 300_000, "../../outside/secret", "/dev/zero", "~nosuchuser/x",
    "a\0b", "我" * 300, "\u2028", "\u202e", "%s%n", "{0.__class__}", "nan", "-1", "1e400",
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**32, 2**53, 2**60, 2**63 - 1, 2**63, 10**30,
           -(2**63), 0.5, -0.0, 1e-45, 1e38, 1e308,
           float("nan"), float("inf"), -float("inf")]  # fmt: skip
SHAPES = [None, True, False, [], {}, [[]], [0], ["a"], {"kind": "x"}, [1] * 1000, {"": ""},
          [[[[[[[[1]]]]]]]], {"a": {"b": {"c": {}}}}]  # fmt: skip
DEEP = ["[" * 100_000, "[" * 500 + "]" * 500, '{"a":' * 5000 + "1" + "}" * 5000, "9" * 5000,
        '"\\ud800"', '{"a": 1, "a": 2}']  # fmt: skip
SIZES = [0, 1, 2**16, 2**31, 2**32 - 1, 2**32, 2**60, 2**63, 2**64 - 1]


def damage(files: Files, rng: random.Random) -> Damaged:
    """One sample, damaged in one place or, seldom, in three."""
    found = Damaged(dict(files), "", 0)
    for _ in range(3 if rng.random() < 0.1 else 1):
        names = sorted(name for name, content in found.files.items() if isinstance(content, bytes))
        if not names:
            return found
        name = rng.choice(names)
        content = found.files[name]
        kinds = _kinds(name)
        do = rng.choice(kinds)
        try:
            changed, note, n = do(content, rng)
        except (LookupError, TypeError, ValueError, RecursionError):
            changed, note, n = noise(content, rng)  # what an earlier damage left is not of the form
        new = {**found.files, name: changed}
        if changed is None:
            del new[name]
        n_bytes = None if n is None or found.n_bytes is None else found.n_bytes + n
        found = Damaged(new, f"{found.note}{name}: {note}; ", n_bytes)
    return found


def _kinds(name: str) -> list[Callable[[Any, random.Random], tuple[Any, str, int | None]]]:
    crafted: list[Any] = []
    if name.endswith("tokenizer.json"):
        crafted = [_json] * 8 + [_json_text] * 2 + [_tokenizer] * 8 + [letters] * 2
    elif name.endswith(".json"):
        crafted = [_json] * 8 + [_json_text] * 2 + [letters] * 2
    elif name.endswith((".safetensors", ".trace")):
        crafted = [_header] * 8 + [_numbers] * 4 + [_header_text]
    elif name.endswith(".gguf"):
        crafted = [_sizes] * 8 + [_numbers] * 2
    elif name.endswith(".toml"):
        crafted = [_toml] * 16 + [letters] * 4
    elif name.endswith((".txt", ".jsonl", ".tsv")):
        crafted = [_text] * 6 + [letters] * 4
    return [flip, flip, cut, insert, repeat, zero, swap, append, noise, special, *crafted]


# ── accidents ──


def flip(content: bytes, rng: random.Random) -> tuple[bytes, str, int]:
    new, n = bytearray(content), rng.choice([1, 1, 2, 8])
    for _ in range(n if new else 0):
        bit = rng.randrange(8 * len(new))
        new[bit // 8] ^= 1 << bit % 8
    return bytes(new), f"{n} bits flipped", n


def cut(content: bytes, rng: random.Random) -> tuple[bytes, str, int]:
    at = rng.choice([0, max(0, len(content) - 1), rng.randrange(len(content) + 1)])
    return content[:at], f"cut off at {at}", len(content) - at


def insert(content: bytes, rng: random.Random) -> tuple[bytes, str, int | None]:
    at, n = rng.randrange(len(content) + 1), rng.choice([1, 4, 32, 64])
    return content[:at] + rng.randbytes(n) + content[at:], f"{n} bytes inserted at {at}", None


def append(content: bytes, rng: random.Random) -> tuple[bytes, str, int]:
    n = rng.choice([1, 31, 32, 4096])
    more = bytes(n) if rng.random() < 0.5 else rng.randbytes(n)
    return content + more, f"{n} bytes behind the end", 0


def repeat(content: bytes, rng: random.Random) -> tuple[bytes, str, int | None]:
    start, n = _chunk(content, rng)
    end = start + n
    return content[:end] + content[start:end] + content[end:], f"{n} bytes twice", None


def zero(content: bytes, rng: random.Random) -> tuple[bytes, str, int]:
    start, n = _chunk(content, rng)
    return content[:start] + bytes(n) + content[start + n :], f"{n} zeros at {start}", n


def swap(content: bytes, rng: random.Random) -> tuple[bytes, str, int]:
    (a, n), (b, m) = sorted([_chunk(content, rng), _chunk(content, rng)])
    n = min(n, m, b - a)
    new = content[:a] + content[b : b + n] + content[a + n : b] + content[a : a + n]
    return new + content[b + n :], f"{n} bytes at {a} and {b} swapped", 2 * n


def noise(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    n = rng.choice([0, 1, 8, 100, len(content)])
    return rng.randbytes(n), f"{n} random bytes instead", None


def special(_content: bytes, rng: random.Random) -> tuple[Any, str, None]:
    found = rng.choice([None, *SPECIALS])
    return found, f"{found} instead", None


def letters(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    """A text that stays one: letters typed over, lines lost, doubled or exchanged."""
    if rng.random() < 0.5:
        new = bytearray(content)
        for _ in range(rng.choice([1, 2, 5]) if new else 0):
            new[rng.randrange(len(new))] = rng.randrange(32, 127)
        return bytes(new), "letters typed over", None
    lines = content.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.choice(["lost", "twice", "exchanged"])
    if kind == "lost":
        del lines[a]
    elif kind == "twice":
        lines.insert(b, lines[a])
    else:
        lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines), f"lines {a}, {b} {kind}", None


def _chunk(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(rng.choice([1, 8, 64, 512]), len(content) - start)


# ── chosen values ──


def _json(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        return content, "left as it was", None
    new, note = craft(plain, rng)
    return json.dumps(new).encode("utf-8", "surrogatepass"), note, None


def _json_text(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    """What no parsed value can say: depth, digits, keys that come twice."""
    text = content.decode(errors="replace")
    places = [found.span(1) for found in re.finditer(r":\s*(\"[^\"]*\"|[\w.+-]+)", text)]
    start, end = rng.choice(places or [(0, len(text))])
    deep = rng.choice(DEEP)
    return (text[:start] + deep + text[end:]).encode(), f"{deep[:20]}… at {start}", None


def craft(plain: Any, rng: random.Random) -> tuple[Any, str]:
    """The same but for one value, anywhere inside, or one key."""
    new = copy.deepcopy(plain)
    place, key = new, None
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        parent, key = place, rng.choice(keys)
        place = place[key]
        if rng.random() < 0.2:
            break
    if key is None:
        return rng.choice([*SHAPES, *NUMBERS, *TEXTS]), "another value"
    kind = rng.random()
    if kind < 0.1 and isinstance(parent, dict):
        del parent[key]
        return new, f"without {key!r:.40}"
    if kind < 0.2 and isinstance(parent, dict):
        parent[f"{key}s"[:50]] = rng.choice(SHAPES)
        return new, f"with {key!r:.40} and an s"
    value = _like(place, rng)
    if kind < 0.3 and isinstance(place, int | float) and not isinstance(place, bool):
        value = place + rng.choice([-1, 1]) if kind < 0.25 else place * rng.choice([2, 1000])
    parent[key] = value
    return new, f"{key!r:.40} = {value!r:.40}"


def _like(value: Any, rng: random.Random) -> Any:
    """Another value, of the same type in half of the cases."""
    if rng.random() < 0.5:
        return rng.choice(rng.choice([NUMBERS, TEXTS, SHAPES]))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([n for n in NUMBERS if isinstance(n, int)])
    return rng.choice(NUMBERS if isinstance(value, float) else TEXTS)


def _tokenizer(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    """A small file that becomes large: when it is read, or with every text."""
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        return content, "left as it was", None

    def replacing(pattern: dict[str, str], content: str) -> dict[str, Any]:
        return {"type": "Replace", "pattern": pattern, "content": content}

    def cutting(pattern: str) -> dict[str, Any]:
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
                "invert": False}  # fmt: skip

    token = {"id": 3, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False}  # fmt: skip
    text = {"Sequence": {"id": "A", "type_id": 0}}
    name, attacks = rng.choice([
        ("normalizer", [
            {"type": "Sequence", "normalizers": [replacing({"String": "t"}, "t" * 50)] * 9},
            {"type": "Sequence", "normalizers": [{"type": "NFKD"}] * 100_000},
            replacing({"Regex": "(a+)+$"}, "b"), replacing({"Regex": "("}, ""),
            replacing({"Regex": ""}, "x" * 100_000), {"type": "Prepend", "prepend": "x" * 10**6},
            {"type": "Precompiled", "precompiled_charsmap": "AAAA" * 100},
            {"type": "Precompiled", "precompiled_charsmap": "//////////8AAAAA"},
        ]),
        ("pre_tokenizer", [
            cutting("(a{1,1000}){1,1000}"), cutting("(.*)*(.*)*(.*)*x"), cutting("\\"),
            cutting("(?<=a*)b"), {"type": "Metaspace", "replacement": "xx"},
            {"type": "Digits"}, {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 9},
        ]),
        ("decoder", [
            {"type": "Sequence", "decoders": [replacing({"String": "t"}, "t" * 50)] * 9},
            {"type": "Strip", "content": "t", "start": 2**60, "stop": 2**60},
            {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": True},
        ]),
        ("post_processor", [
            {"type": "TemplateProcessing", "single": [text] * 10_000, "pair": [text],
             "special_tokens": {}},
            {"type": "BertProcessing", "sep": ["x", 2**32 - 1], "cls": ["y", 2**32 - 1]},
        ]),
        ("added_tokens", [
            [{**token, "content": "x" * 10**6}], [{**token, "content": "", "id": 2**32 - 1}],
            [{**token, "content": f"<{i}>", "id": i} for i in range(20_000)],
        ]),
        ("truncation", [{"max_length": 0, "stride": 9, "strategy": "LongestFirst",
                         "direction": "Right"}]),
        ("padding", [{"strategy": {"Fixed": 10**12}, "direction": "Right", "pad_id": 0,
                      "pad_type_id": 0, "pad_token": "x", "pad_to_multiple_of": 0}]),
        ("model", [
            {"type": "Unigram", "unk_id": 0, "vocab": [["x" * 10**6, 0.0]]},
            {"type": "Unigram", "unk_id": 2**60, "vocab": [["a", 0.0]]},
            {"type": "Unigram", "unk_id": None, "vocab": [["a", float("nan")], ["b", 1e308]]},
            {"type": "WordPiece", "vocab": {"a": 0, "##a": 1}, "unk_token": "none",
             "continuing_subword_prefix": "##", "max_input_chars_per_word": 2**60},
            {"type": "BPE", "vocab": {"a": 0, "b": 2**32 - 1}, "merges": []},
            {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": [["a", "a"]], "dropout": 7.0},
            {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "a"]]},
            {"type": "WordLevel", "vocab": {}, "unk_token": "?"},
        ]),
    ])  # fmt: skip
    attack = rng.choice(attacks)
    return json.dumps({**plain, name: attack}).encode(), f"{name} = {attack!r:.60}", None


def _header(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    """A safetensors header with another value: shapes, places, dtypes, metadata."""
    split = _split(content)
    if split is None:
        return flip(content, rng)[0], "flipped", None
    header, data = split
    names = [name for name in header if name != "__metadata__"]
    kind = rng.random()
    if kind < 0.25 and len(names) > 1:
        a, b = rng.sample(names, 2)
        header[a], header[b] = header[b], header[a]
        note = f"{a} and {b} swapped"
    elif kind < 0.5 and names:
        name = rng.choice(names)
        shape = header[name]["shape"]
        options = [[1, *shape[1:]], [*shape, 1], shape[::-1], [2**40, 0], [], [-1], [2**62, 4]]
        header[name]["shape"] = rng.choice(options)
        note = f"{name} of shape {header[name]['shape']}"
    elif kind < 0.6 and len(names) > 1:
        a, b = rng.sample(names, 2)
        header[a]["data_offsets"] = header[b]["data_offsets"]
        note = f"{a} lies on {b}"
    else:
        inner = header.get("__metadata__", {})
        texts = [n for n, v in inner.items() if isinstance(v, str) and v[:1] in "{["]
        if texts and rng.random() < 0.7:  # JSON inside the metadata
            name = rng.choice(texts)
            plain, note = craft(json.loads(inner[name]), rng)
            inner[name] = json.dumps(plain)
        else:
            header, note = craft(header, rng)
    return _joined(header, data), note, None


def _header_text(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    deep = rng.choice(DEEP).encode()
    size = rng.choice([len(deep), *SIZES])
    return struct.pack("<Q", size % 2**64) + deep + content[8:], f"a header of {size} bytes", None


def _numbers(content: bytes, rng: random.Random) -> tuple[bytes, str, int]:
    """NaN or infinity among the weights, which fill the end of the file."""
    value = rng.choice([b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\0\0\x80\xff", b"\xff\xff\xff\xff"])
    at = 4 * rng.randrange(len(content) // 8, len(content) // 4) if len(content) > 64 else 0
    at = len(content) - (len(content) - at) // 4 * 4
    return content[:at] + value + content[at + 4 :], f"{value.hex()} at {at}", 4


def _sizes(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    """Another size among those of a binary header."""
    at = rng.choice([8, 16, rng.randrange(0, max(1, min(len(content), 6000)))])
    size = rng.choice(SIZES)
    form = rng.choice(["<Q", "<I"])
    raw = struct.pack(form, size % (2**64 if form == "<Q" else 2**32))
    return content[:at] + raw + content[at + len(raw) :], f"{size} at {at}", None


def _toml(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    lines = content.decode(errors="replace").splitlines() or [""]
    settings = [i for i, line in enumerate(lines) if "=" in line] or [0]
    i = rng.choice(settings)
    name = lines[i].split("=")[0].strip()
    is_number = re.search(r"=\s*[\d.-]+\s*(#.*)?$", lines[i]) is not None
    numbers = [_toml_number(n) for n in NUMBERS]
    value = rng.choice(numbers) if is_number and rng.random() < 0.6 else rng.choice([
        *(json.dumps(text) for text in TEXTS), *numbers, "true", "[]",
        "{}", "[[[]]]", "1979-05-27", "[" * 100_000, "[" * 200 + "]" * 200, "9" * 5000,
        "{a={b={c=1}}}", "'*'", "'/dev/*'", "'../../outside/secret'",
    ])  # fmt: skip
    kind = rng.random()
    if kind < 0.1:
        lines[i] += "\n" + lines[i]
    elif kind < 0.2:
        lines[i] = f"{name}x = {value}"
    else:
        lines[i] = f"{name} = {value}"
    return "\n".join(lines).encode(), f"{name} = {value[:40]}", None


def _toml_number(n: float) -> str:
    return {"nan": "nan", "inf": "inf", "-inf": "-inf"}.get(repr(n), repr(n))


def _text(content: bytes, rng: random.Random) -> tuple[bytes, str, None]:
    text = content.decode(errors="replace")
    new = rng.choice([
        text.encode("utf-16"), text.encode("utf-16-le"), text.encode("utf-16-be"),
        text.encode("utf-32"), text.encode("latin-1", "replace"), content + bytes(5000),
        content + b"word" * 250_000 + b"\n", content + b"\0" + b"\n", b"\n" * 5000,
        content.replace(b"\n", b"\r"), content * 50, content + "\ud800".encode("utf-8", "replace"),
        b"[" * 100_000 + b"\n", content + b'{"text": ' * 3000 + b"\n",
    ])  # fmt: skip
    return new, f"another text of {len(new)} bytes", None


def _split(content: bytes) -> tuple[dict[str, Any], bytes] | None:
    try:
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + size])
    except (struct.error, ValueError, OverflowError, RecursionError):
        return None
    return (header, content[8 + size :]) if isinstance(header, dict) else None


def _joined(header: Any, data: bytes) -> bytes:
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
