"""Lead every link into the code to its line: run `python docs/refresh_lines.py` after code moved.

    [`attention` · fromscratch/function.py:9](../src/glassformer/fromscratch/function.py#L9)
     └ piece       └ file under src/glassformer

The piece decides the line. It is the name of something defined in the file (`attention`,
`Block.forward`), or else a bit of code that stands on one line alone (`return norm(x + part(x))`).
"""

import ast
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
LINK = re.compile(
    r"\[`(?P<piece>[^`]+)` · (?P<file>[\w/]+\.py):(?P<shown>\d+)\]"
    r"\((?P<target>[^()#]+)#L(?P<line>\d+)\)"
)


def definitions(source: str) -> dict[str, int]:
    """The line of every function, class and constant, under its full name (`Block.forward`)."""
    found: dict[str, int] = {}

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                # The first of several, such as the getter and setter of one property.
                found.setdefault(prefix + node.name, node.lineno)
                collect(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and not prefix:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                found.update(dict.fromkeys(names, node.lineno))

    collect(ast.parse(source).body, "")
    return found


def line_of(piece: str, source: str) -> int:
    """The line that defines the piece, else the only line that contains it."""
    defined = definitions(source)
    if piece in defined:
        return defined[piece]
    lines = [n for n, line in enumerate(source.split("\n"), 1) if piece in line]
    if len(lines) != 1:
        raise ValueError(
            f"`{piece}` must be defined or stand on one line alone; it stands on {len(lines)}."
        )
    return lines[0]


def refreshed(text: str, folder: Path) -> str:
    """The page with the right number in every link; what it links to is found from `folder`."""

    def led(link: re.Match[str]) -> str:
        source = (folder / link["target"]).read_text("utf-8")
        try:
            line = line_of(link["piece"], source)
        except ValueError as error:
            raise ValueError(f"{link['file']}: {error}") from None
        return f"[`{link['piece']}` · {link['file']}:{line}]({link['target']}#L{line})"

    return LINK.sub(led, text)


def main(docs: Path = DOCS) -> int:
    """Rewrite the pages whose numbers are wrong; 1 if a link leads nowhere, and then no page."""
    pages = {page: page.read_text("utf-8") for page in sorted(docs.glob("*.md"))}
    new, problems = {}, []
    for page, text in pages.items():
        try:
            new[page] = refreshed(text, docs)
        except (ValueError, OSError) as error:
            problems.append(f"{page.name}: {error}")
    if problems:
        sys.stderr.write("\n".join([*problems, "Nothing was changed. Mend these links first.\n"]))
        return 1
    for page, text in new.items():
        if text != pages[page]:
            page.write_text(text, "utf-8")
            sys.stdout.write(f"{page.name}: line numbers refreshed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
