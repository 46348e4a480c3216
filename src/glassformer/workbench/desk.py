"""Where a worker's jobs are done: a request is read, its room called, the answer returned."""

from collections.abc import Callable
from typing import Any

from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import (
    atlas,
    exports,
    flow,
    heads,
    look,
    shapes,
    steps,
    touch,
    training,
    writing,
)
from glassformer.workbench.rooms.learn import (
    chapters,
    course_map,
    exercises,
    experiments,
    questions,
)
from glassformer.workbench.wire import JOBS

_ROOMS: dict[str, Callable[[Any, Memory, Progress], Any]] = {
    "change": touch.compare_runs,
    "rewrite": touch.rewrite_text,
    "flow": flow.measure_flow,
    "lens": flow.read_lens,
    "attribute": flow.attribute_token,
    "why": flow.explain_token,
    "verdict": flow.judge_reasons,
    "run": look.describe_run,
    "site": look.pack_site,
    "maps": heads.draw_maps,
    "roles": heads.name_roles,
    "effects": heads.measure_effects,
    "export": exports.export_view,
    "atlas/open": atlas.open_head,
    "atlas/survey": atlas.survey_head,
    "atlas/tile": atlas.cut_tile,
    "atlas/cell": atlas.read_cell,
    "atlas/labels": atlas.list_labels,
    "atlas/find": atlas.find_text,
    "steps": steps.describe_steps,
    "feed_forward": steps.pack_feed_forward,
    "shapes": shapes.describe_shapes,
    "write": writing.write_text,
    "looks": writing.list_looks,
    "training": training.describe_training,
    "film": training.show_film,
    "learn/course": course_map.describe_course,
    "learn/chapter": chapters.describe_chapter,
    "learn/read": chapters.mark_read,
    "learn/experiment": experiments.describe_experiment,
    "learn/measure": experiments.measure_experiment,
    "learn/exercise": exercises.describe_exercise,
    "learn/save": exercises.save_exercise,
    "learn/check": exercises.check_exercise,
    "learn/hint": exercises.give_hint,
    "learn/reset": exercises.reset_exercise,
    "learn/questions": questions.list_round,
    "learn/answer": questions.tell_answer,
    "learn/grade": questions.grade_question,
}
_MEMORY = Memory()


def handle(name: str, arguments: dict[str, Any], progress: Progress) -> Any:
    """What a job answers, in plain values."""
    _MEMORY.locate(arguments.pop("sources", {}))
    asked = JOBS[name].asked.model_validate(arguments)
    return _ROOMS[name](asked, _MEMORY, progress)
