"""The certificate as one HTML file: readable without scripts or a network, and printable."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from glassformer.languages import Language
from glassformer.school.certificate.proof import Certificate
from glassformer.school.practice.capstone.capstone_report import YOURS
from glassformer.school.practice.report_texts import kind_label
from glassformer.storage import atomic_file

_GENERATOR = '<meta name="generator" content="glassformer certificate">'  # ours alone is replaced
_LANGUAGES = {"en": "en", "zh": "zh-Hans"}
_OUTCOMES = {"holds": "lab.holds", "partly": "lab.partly", "fails": "lab.fails"}
_SIZES = {"quick": "certificate.size.quick", "full": "certificate.size.full"}


def write_certificate(path: Path, certificate: Certificate, language: Language) -> None:
    """The page in one language, written whole or not at all."""
    text = certificate_markup(certificate, language)
    with atomic_file(path, mark=_GENERATOR.encode()) as unfinished:
        unfinished.write_text(text, "utf-8")


def certificate_markup(certificate: Certificate, language: Language) -> str:
    """The whole file as text."""
    say = language.say
    style = files("glassformer.school.certificate").joinpath("sheet.css").read_text("utf-8")
    title = escape(say("certificate.title"))
    made = say("certificate.made", day=certificate.day, **_versions(certificate))
    sections = (
        _draw_exercises(certificate, language),
        _draw_capstones(certificate, language),
        _draw_records(certificate, language),
        _draw_limits(certificate, language),
    )
    return f"""<!doctype html>
<html lang="{_LANGUAGES[language.code]}">
<head>
<meta charset="utf-8">
{_GENERATOR}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · {escape(certificate.name)}</title>
<style>
{style}
</style>
</head>
<body>
<main>
<header>
<p class="mark">glassformer</p>
<h1>{title}</h1>
<p class="name">{escape(certificate.name)}</p>
<p>{escape(made)}</p>
</header>
{"".join(sections)}
</main>
</body>
</html>
"""


def _versions(certificate: Certificate) -> dict[str, str]:
    """The versions under names that a catalogue can fill in."""
    return {name.lower(): version for name, version in certificate.versions.items()}


def _draw_exercises(certificate: Certificate, language: Language) -> str:
    say, n = language.say, len(certificate.proved)
    if not n:
        return _draw_section(say("certificate.graded"), f"<p>{escape(say('certificate.none'))}</p>")
    rows = []
    for each in certificate.proved:
        brief = each.exercise.brief(language.code)
        rows.append(
            (
                f"{escape(brief.title)} <code>{escape(each.exercise.name)}</code>",
                escape(kind_label(each.exercise, language)),
                str(each.exercise.difficulty),
                escape(say("list.comma").join(each.checks)),
                str(each.hints),
                escape(each.day or "–"),
                f'<code class="hash">{each.sha256}</code>',
            )
        )
    heads = (
        say("certificate.column.exercise"),
        say("certificate.column.kind"),
        say("certificate.column.difficulty"),
        say("certificate.column.checks"),
        say("certificate.column.hints"),
        say("certificate.column.day"),
        say("certificate.column.hash"),
    )
    note = f"<p>{escape(say('certificate.graded.note', n=n))}</p>"
    title = say("certificate.graded")
    return _draw_section(title, note + _draw_table(title, heads, rows))


def _draw_capstones(certificate: Certificate, language: Language) -> str:
    say, parts = language.say, []
    for report in certificate.capstones:
        own = report.select(YOURS)
        key = "certificate.capstone.whole" if report.is_complete else "certificate.capstone.part"
        sentence = say(key, model=report.model, n=len(own), total=len(report.parts))
        parts.append(
            f"<p>{escape(sentence)}</p><blockquote><p>{escape(report.text)}</p>"
            f"<p>{escape(report.library.text)}</p></blockquote>"
            f"<p>{escape(say('certificate.capstone.own'))} "
            f"{escape(say('list.comma').join(own))}</p>"
        )
    return _draw_section(say("certificate.capstone"), "".join(parts)) if parts else ""


def _draw_records(certificate: Certificate, language: Language) -> str:
    """What nobody checked for this page."""
    say, parts = language.say, []
    if certificate.chapters:
        rows = [
            (escape(each.title), f"{each.answered} / {each.questions}")
            for each in certificate.chapters
        ]
        heads = (say("learn.column.title"), say("learn.column.questions"))
        title = say("certificate.questions")
        parts.append(
            f"<h3>{escape(title)}</h3><p>{escape(say('certificate.questions.note'))}</p>"
            + _draw_table(title, heads, rows)
        )
    if certificate.experiments:
        rows = [
            (
                escape(title),
                escape(run.day),
                escape(_translate(run.size, _SIZES, language)),
                escape(_translate(run.outcome, _OUTCOMES, language)),
            )
            for title, run in certificate.experiments
        ]
        heads = (
            say("certificate.column.experiment"),
            say("certificate.column.run"),
            say("certificate.column.size"),
            say("certificate.column.outcome"),
        )
        title = say("certificate.experiments")
        parts.append(f"<h3>{escape(title)}</h3>" + _draw_table(title, heads, rows))
    if not parts:
        return ""
    note = f"<p>{escape(say('certificate.recorded.note'))}</p>"
    return _draw_section(say("certificate.recorded"), note + "".join(parts))


def _draw_limits(certificate: Certificate, language: Language) -> str:
    say = language.say
    shut_in = say("list.comma").join(certificate.isolation)
    sentences = [
        say("certificate.limit.identity"),
        say("certificate.limit.machine"),
        say("certificate.limit.isolation", layers=shut_in)
        if shut_in
        else say("certificate.limit.open"),
    ]
    if certificate.n_failed:
        sentences.append(say("certificate.limit.failed", n=certificate.n_failed))
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return _draw_section(say("certificate.limits"), f"<ul>{items}</ul>")


def _translate(word: str, keys: dict[str, str], language: Language) -> str:
    """A word of the progress file in the reader's language; an unknown one as it is."""
    return language.say(keys[word]) if word in keys else word


def _draw_section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>\n"


def _draw_table(label: str, heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls by itself where the window is narrow; cells are markup."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{escape(label)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
