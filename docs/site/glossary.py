"""The glossary as a page: a table of terms for each group."""

from glassformer.languages.glossary import Term, read_glossary

PLACE = "guides/glossary.md"
_TITLE = {"en": "Glossary", "zh": "术语表"}
_INTRO = {
    "en": "The terms used in the program, the chapters and this site, in English and Chinese.",
    "zh": "程序、课文和本网站使用的术语，中英对照。",
}
_COLUMNS = {"en": "| Term | Chinese | Meaning |", "zh": "| 术语 | 英文 | 含义 |"}


def glossary_page(code: str) -> str:
    """Every term in one language, with the other language beside it."""
    parts = [f"# {_TITLE[code]}", _INTRO[code]]
    for titles, terms in read_glossary().groups.items():
        parts.append(f"## {titles[0] if code == 'en' else titles[1]}")
        parts.append("\n".join([_COLUMNS[code], "|---|---|---|", *(_row(t, code) for t in terms)]))
    return "\n\n".join(parts) + "\n"


def _row(term: Term, code: str) -> str:
    if code == "en":
        return f"| **{term.en}** | {term.zh} | {term.about_en} |"
    return f"| **{term.zh}** | {term.en} | {term.about_zh} |"
