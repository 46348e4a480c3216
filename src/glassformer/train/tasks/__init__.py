"""What can be learned: a batch to a loss, a model to scores, one file per task.

Reading order: task (what they all have), windows (parts of a long text), language, masked,
translation, classification.
"""

from glassformer.train.tasks.classification import Classification
from glassformer.train.tasks.language import Language
from glassformer.train.tasks.masked import Masked
from glassformer.train.tasks.task import Objective, Task
from glassformer.train.tasks.translation import Translation

TASKS: dict[str, type[Task]] = {
    "language": Language,
    "masked": Masked,
    "translation": Translation,
    "classification": Classification,
}

__all__ = [
    "TASKS",
    "Classification",
    "Language",
    "Masked",
    "Objective",
    "Task",
    "Translation",
]
