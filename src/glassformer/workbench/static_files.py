"""The built front end and its texts: read once, compressed once, served by name."""

import gzip
import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from glassformer.languages import CODES

_KINDS = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "json": "application/json",
    "woff2": "font/woff2",
}
_PREFIXES = ("page.", "bench.", "look.role.")  # of the texts that the front end shows
_NOT_BUILT = "The pages of the workbench are missing from this installation. Build them: make web\n"


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent: whole, compressed, and the tag by which a browser knows it again."""

    body: bytes
    packed: bytes | None  # None where compression does not pay
    kind: str
    tag: str

    @classmethod
    def of(cls, body: bytes, kind: str) -> "StaticFile":
        packed = gzip.compress(body, 9, mtime=0)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        return cls(body, packed if len(packed) < 0.9 * len(body) else None, kind, tag)

    def respond(self, request: Request) -> Response:
        """The file, in the form that the client accepts; nothing where it has it already."""
        headers = {"etag": self.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if self.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return Response(self.packed, media_type=self.kind, headers=headers)
        return Response(self.body, media_type=self.kind, headers=headers)


def read_static_files() -> dict[str, StaticFile]:
    """Everything that is served without a token, by name; "" is the application."""
    folder = files("glassformer.workbench").joinpath("static")
    known = {
        each.name: StaticFile.of(each.read_bytes(), kind)
        for each in (folder.iterdir() if folder.is_dir() else ())
        if (kind := _KINDS.get(each.name.rpartition(".")[2])) is not None
    }
    known["texts.json"] = StaticFile.of(_pack_texts(), _KINDS["json"])
    if "index.html" in known:
        known[""] = known["index.html"]
    return known


def say_not_built() -> Response:
    """Where the application should be, and is not."""
    return PlainTextResponse(_NOT_BUILT, 404)


def _pack_texts() -> bytes:
    """What the front end says, in every language."""
    return json.dumps({code: _select_texts(code) for code in CODES}, ensure_ascii=False).encode()


def _select_texts(code: str) -> dict[str, str]:
    content = files("glassformer.languages").joinpath(f"{code}.json").read_text("utf-8")
    return {key: text for key, text in json.loads(content).items() if key.startswith(_PREFIXES)}
