"""Where a worker's jobs are done: a request is read, its room called, the answer returned."""

from importlib import import_module
from typing import Any

from glassformer.workbench.jobs import Report
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire import JOBS

# Where each job is done. Rooms are imported when somebody enters them: the first picture waits for
# one of them only.
_ROOMS: dict[str, tuple[str, str]] = {
    "change": ("touch", "compare_runs"),
    "rewrite": ("touch", "rewrite_text"),
    "flow": ("flow", "measure_flow"),
    "lens": ("flow", "read_lens"),
    "attribute": ("flow", "attribute_token"),
    "why": ("flow", "explain_token"),
    "verdict": ("flow", "judge_reasons"),
    "run": ("look", "describe_run"),
    "site": ("look", "open_site"),
    "maps": ("heads", "draw_maps"),
    "sketch": ("heads", "sketch_head"),
    "roles": ("heads", "name_roles"),
    "effects": ("heads", "measure_effects"),
    "export": ("exports", "export_view"),
    "lines/steps": ("lines.steps", "write_steps"),
    "lines/shapes": ("lines.shapes", "write_shapes"),
    "lines/touch": ("lines.touch", "write_touch"),
    "lines/flow": ("lines.flow", "write_flow"),
    "lines/writing": ("lines.writing", "write_writing"),
    "lines/atlas": ("lines.atlas", "write_region"),
    "atlas/open": ("atlas", "open_head"),
    "atlas/survey": ("atlas", "survey_head"),
    "atlas/tile": ("atlas", "cut_tile"),
    "atlas/cell": ("atlas", "read_cell"),
    "atlas/labels": ("atlas", "list_labels"),
    "atlas/find": ("atlas", "find_text"),
    "steps": ("steps", "describe_steps"),
    "feed_forward": ("steps", "pack_feed_forward"),
    "shapes": ("shapes", "describe_shapes"),
    "shapes/measured": ("measured_shapes", "measure_shapes"),
    "write": ("writing", "write_text"),
    "looks": ("writing", "list_looks"),
    "training": ("training", "describe_training"),
    "film": ("training", "show_film"),
    "learn/course": ("learn/course_map", "describe_course"),
    "learn/plans": ("learn/course_plans", "list_plans"),
    "learn/plan": ("learn/course_plans", "show_plan"),
    "learn/capstone": ("learn/capstone", "describe_parts"),
    "learn/join": ("learn/capstone", "join_parts"),
    "learn/chapter": ("learn/chapters", "describe_chapter"),
    "learn/read": ("learn/chapters", "mark_read"),
    "learn/experiment": ("learn/experiments", "describe_experiment"),
    "learn/measure": ("learn/experiments", "measure_experiment"),
    "learn/exercise": ("learn/exercises", "describe_exercise"),
    "learn/save": ("learn/exercises", "save_exercise"),
    "learn/check": ("learn/exercises", "check_exercise"),
    "learn/hint": ("learn/exercises", "give_hint"),
    "learn/reset": ("learn/exercises", "reset_exercise"),
    "learn/questions": ("learn/questions", "list_round"),
    "learn/answer": ("learn/questions", "tell_answer"),
    "learn/grade": ("learn/questions", "grade_question"),
}
_MEMORY = Memory()


def handle(name: str, arguments: dict[str, Any], progress: Report) -> Any:
    """What a job answers, in plain values."""
    _MEMORY.locate(arguments.pop("sources", {}))
    asked = JOBS[name].asked.model_validate(arguments)
    room, function = _ROOMS[name]
    module = import_module(f"glassformer.workbench.rooms.{room.replace('/', '.')}")
    return getattr(module, function)(asked, _MEMORY, progress)
