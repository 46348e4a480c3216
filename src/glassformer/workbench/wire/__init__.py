"""What travels between the pages and the server, by room; TypeScript types are generated from it.

`JOBS` is the table of everything that can be asked of a worker: its name, which is its address
under /api/, what is asked and what is answered. Imports pydantic alone: the server loads no torch.
"""

from typing import NamedTuple

from glassformer.workbench.wire import (
    atlas,
    capstone,
    course_plans,
    exports,
    flow,
    heads,
    learn,
    lines,
    runs,
    shapes,
    steps,
    touch,
    training,
    writing,
)
from glassformer.workbench.wire.requests import Answer, Request


class JobForm(NamedTuple):
    """What a job is asked, and what it answers."""

    asked: type[Request]
    answered: type[Answer]


JOBS: dict[str, JobForm] = {
    "change": JobForm(touch.ChangeRequest, touch.ChangeAnswer),
    "rewrite": JobForm(touch.RewriteRequest, touch.RewriteAnswer),
    "flow": JobForm(flow.FlowRequest, flow.FlowAnswer),
    "lens": JobForm(flow.LensRequest, flow.LensAnswer),
    "attribute": JobForm(flow.AttributeRequest, flow.AttributeAnswer),
    "why": JobForm(flow.WhyRequest, flow.WhyAnswer),
    "verdict": JobForm(flow.WhyRequest, flow.VerdictAnswer),
    "run": JobForm(runs.RunRequest, runs.RunAnswer),
    "site": JobForm(runs.SiteRequest, runs.SiteAnswer),
    "maps": JobForm(heads.MapsRequest, heads.MapsAnswer),
    "sketch": JobForm(heads.SketchRequest, heads.SketchAnswer),
    "roles": JobForm(heads.RolesRequest, heads.RolesAnswer),
    "effects": JobForm(heads.EffectsRequest, heads.EffectsAnswer),
    "export": JobForm(exports.ExportRequest, exports.ExportAnswer),
    "lines/steps": JobForm(lines.StepsLinesRequest, lines.LinesAnswer),
    "lines/shapes": JobForm(shapes.ShapesRequest, lines.LinesAnswer),
    "lines/touch": JobForm(touch.ChangeRequest, lines.LinesAnswer),
    "lines/flow": JobForm(lines.FlowLinesRequest, lines.LinesAnswer),
    "lines/writing": JobForm(lines.WriteLinesRequest, lines.LinesAnswer),
    "lines/atlas": JobForm(lines.RegionRequest, lines.LinesAnswer),
    "atlas/open": JobForm(atlas.OpenRequest, atlas.OpenAnswer),
    "atlas/survey": JobForm(atlas.SurveyRequest, atlas.SurveyAnswer),
    "atlas/tile": JobForm(atlas.TileRequest, atlas.TileAnswer),
    "atlas/cell": JobForm(atlas.CellRequest, atlas.CellAnswer),
    "atlas/labels": JobForm(atlas.LabelsRequest, atlas.LabelsAnswer),
    "atlas/find": JobForm(atlas.FindRequest, atlas.FindAnswer),
    "steps": JobForm(steps.StepsRequest, steps.StepsAnswer),
    "feed_forward": JobForm(steps.FeedForwardRequest, steps.FeedForwardAnswer),
    "shapes": JobForm(shapes.ShapesRequest, shapes.ShapesAnswer),
    "shapes/measured": JobForm(shapes.MeasuredShapesRequest, shapes.MeasuredShapesAnswer),
    "write": JobForm(writing.WriteRequest, writing.WriteAnswer),
    "looks": JobForm(writing.LooksRequest, writing.LooksAnswer),
    "training": JobForm(training.TrainingRequest, training.TrainingAnswer),
    "film": JobForm(training.FilmRequest, training.FilmAnswer),
    "learn/course": JobForm(learn.CourseRequest, learn.CourseAnswer),
    "learn/plans": JobForm(course_plans.PlansRequest, course_plans.PlansAnswer),
    "learn/plan": JobForm(course_plans.PlanRequest, course_plans.PlanAnswer),
    "learn/capstone": JobForm(capstone.CapstoneRequest, capstone.CapstoneAnswer),
    "learn/join": JobForm(capstone.CapstoneRunRequest, capstone.CapstoneRunAnswer),
    "learn/chapter": JobForm(learn.PartRequest, learn.ChapterAnswer),
    "learn/read": JobForm(learn.PartRequest, learn.ReadAnswer),
    "learn/experiment": JobForm(learn.PartRequest, learn.ExperimentAnswer),
    "learn/measure": JobForm(learn.ExperimentRunRequest, learn.ExperimentRunAnswer),
    "learn/exercise": JobForm(learn.PartRequest, learn.ExerciseAnswer),
    "learn/save": JobForm(learn.ExerciseSaveRequest, learn.ExerciseSaveAnswer),
    "learn/check": JobForm(learn.ExerciseSaveRequest, learn.ExerciseCheckAnswer),
    "learn/hint": JobForm(learn.PartRequest, learn.HintAnswer),
    "learn/reset": JobForm(learn.PartRequest, learn.ResetAnswer),
    "learn/questions": JobForm(learn.QuestionsRequest, learn.QuestionsAnswer),
    "learn/answer": JobForm(learn.QuestionAnswerRequest, learn.QuestionAnswerAnswer),
    "learn/grade": JobForm(learn.QuestionGradeRequest, learn.QuestionGradeAnswer),
}
