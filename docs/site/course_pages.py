"""Exercises, experiments and questions as pages of their own, and a list of each."""

import re
from collections.abc import Iterable
from html import escape

from glassformer.languages import Language
from glassformer.school.lab.catalogue import NAMES, SECONDS
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.learn import Chapter, read_chapters, read_questions, topics
from glassformer.school.learn.blocks import Reference, plain_text
from glassformer.school.learn.chapters import chapter_file
from glassformer.school.learn.questions import Question
from glassformer.school.practice.exercise import Exercise, all_exercises

KINDS = ("practice", "lab", "quiz")
_SAY = {
    "en": {
        "practice": "Exercises",
        "practice.about": "Each is graded on your machine, by properties on random inputs, and "
        "mistakes are named. `glassformer practice` starts with the first.",
        "lab": "Experiments",
        "lab.about": "Each tests a claim on your machine and ends in a verdict.",
        "quiz": "Questions",
        "quiz.about": "As in interviews, with answers; `glassformer quiz` asks them when you are "
        "about to forget them.",
        "hint": "Hint",
        "then": "After you have solved it",
        "start": "The file you begin with",
        "answer": "Answer",
        "claim": "Claim",
        "prediction": "Prediction",
        "explanation": "Explanation",
        "chapter": "Chapter",
        "facts": "difficulty {difficulty} of 5, about {minutes} minutes",
        "seconds": "about {quick} s, with `--full` {full} s, on one core",
        "all": "All",
        "colon": ": ",
    },
    "zh": {
        "practice": "练习",
        "practice.about": "在你自己的机器上批改：用随机输入检验性质，并指出错误。"
        "`glassformer practice` 从第一题开始。",
        "lab": "实验",
        "lab.about": "每个实验在你自己的机器上检验一个论断，并给出结论。",
        "quiz": "问题",
        "quiz.about": "面试式的问题，附答案；`glassformer quiz` 会在你快要忘记时再次提问。",
        "hint": "提示",
        "then": "做完之后",
        "start": "起始文件",
        "answer": "答案",
        "claim": "论断",
        "prediction": "预测",
        "explanation": "解释",
        "chapter": "课文",
        "facts": "难度 {difficulty}（满分 5），约 {minutes} 分钟",
        "seconds": "单核约 {quick} 秒，加 `--full` 约 {full} 秒",
        "all": "全部",
        "colon": "：",
    },
}
_CHAPTER_LINK = re.compile(r"\]\((\d\d-[a-z-]+\.md)\)")


def course_pages(language: Language) -> dict[str, str]:
    """Every page by its place: practice/NAME.md, lab/NAME.md, quiz/CHAPTER.md, and their lists."""
    chapters = read_chapters(language)
    pages = {
        f"practice/{each.name}.md": _exercise(each, chapters, language.code)
        for each in all_exercises()
    }
    pages |= {f"lab/{name}.md": _experiment(name, chapters, language) for name in NAMES}
    asked = {name: [q for q in read_questions() if q.topic == name] for name in topics()}
    titles = {chapter.name: plain_text(chapter.title) for chapter in chapters}
    pages |= {
        f"quiz/{name}.md": _questions(titles[name], name, questions, language.code)
        for name, questions in asked.items()
    }
    rows = {
        "practice": [
            (each.name, f"{each.number}. {each.brief(language.code).title}", "")
            for each in all_exercises()
        ],
        "lab": [
            (name, ExperimentTexts(name, language).title, ExperimentTexts(name, language).claim)
            for name in NAMES
        ],
        "quiz": [(name, titles[name], str(len(each))) for name, each in asked.items()],
    }
    return pages | {f"{kind}/index.md": _list(kind, rows[kind], language.code) for kind in KINDS}


def title_of(kind: str, name: str, language: Language) -> str:
    """What an exercise or an experiment is called."""
    if kind == "lab":
        return ExperimentTexts(name, language).title
    exercise = next(each for each in all_exercises() if each.name == name)
    return exercise.brief(language.code).title


def _exercise(exercise: Exercise, chapters: Iterable[Chapter], code: str) -> str:
    say, brief = _SAY[code], exercise.brief(code)
    facts = say["facts"].format(difficulty=exercise.difficulty, minutes=exercise.minutes)
    hints = [_folded(f"{say['hint']} {n}", hint) for n, hint in enumerate(brief.hints, start=1)]
    then = [_folded(say["then"], brief.then)] if brief.then else []
    stub = _folded(say["start"], f"```python\n{exercise.stub.strip()}\n```")
    return _page(
        f"{exercise.number}. {brief.title}",
        f"`glassformer practice {exercise.name}` · {facts}"
        + _chapters_of("practice", exercise.name, chapters, code),
        brief.text,
        *hints,
        stub,
        *then,
        _way_back("practice", code),
    )


def _experiment(name: str, chapters: Iterable[Chapter], language: Language) -> str:
    say, texts = _SAY[language.code], ExperimentTexts(name, language)
    seconds = say["seconds"].format(**SECONDS[name])
    return _page(
        texts.title,
        f"`glassformer lab {name}` · {seconds}"
        + _chapters_of("lab", name, chapters, language.code),
        f"**{say['claim']}**{say['colon']}{texts.claim}",
        _folded(say["prediction"], texts.prediction),
        _folded(say["explanation"], texts.explanation),
        _way_back("lab", language.code),
    )


def _questions(title: str, name: str, questions: Iterable[Question], code: str) -> str:
    say = _SAY[code]
    parts = []
    for question in questions:
        snippet = f"\n\n```python\n{question.code.strip()}\n```" if question.code else ""
        answer = f"**{question.short[code].replace('**', '')}**\n\n{question.full[code]}{snippet}"
        asked = " ".join(question.ask[code].split())
        parts.append(f"## {asked}\n\n{_folded(say['answer'], answer)}")
    chapter = f"{say['chapter']}{say['colon']}[{title}](../learn/{chapter_file(name)})"
    text = _page(
        f"{say['quiz']}{say['colon']}{title}", f"`glassformer quiz {name}` · {chapter}", *parts
    )
    text = _CHAPTER_LINK.sub(r"](../learn/\1)", text)
    return text + f"\n{_way_back('quiz', code)}\n"


def _list(kind: str, rows: Iterable[tuple[str, str, str]], code: str) -> str:
    items = "\n".join(
        f"- [{title}]({name}.md){_SAY[code]['colon'] + more if more and kind == 'lab' else ''}"
        f"{f' ({more})' if more and kind == 'quiz' else ''}"
        for name, title, more in rows
    )
    return f"# {_SAY[code][kind]}\n\n{_SAY[code][f'{kind}.about']}\n\n{items}\n"


def _page(title: str, *parts: str) -> str:
    return f"---\norphan: true\n---\n\n# {title}\n\n" + "\n\n".join(parts) + "\n"


def _way_back(kind: str, code: str) -> str:
    say = _SAY[code]
    return f"[{say['all']}{say['colon']}{say[kind]}](index.md)"


def _chapters_of(kind: str, name: str, chapters: Iterable[Chapter], code: str) -> str:
    """Links to the chapters that name an exercise or an experiment."""
    found = [
        f"[{plain_text(chapter.title)}](../learn/{chapter_file(chapter.name)})"
        for chapter in chapters
        if any(
            isinstance(block, Reference) and block.kind == kind and name in block.names
            for block in chapter.blocks
        )
    ]
    say = _SAY[code]
    return f" · {say['chapter']}{say['colon']}{', '.join(found)}" if found else ""


def _folded(title: str, text: str) -> str:
    """Text that is opened by a click; between the markup it stays text, which search finds."""
    return (
        f"```{{raw}} html\n<details><summary>{escape(title)}</summary>\n```\n\n{text}\n\n"
        "```{raw} html\n</details>\n```"
    )
