"""What can be learned: a batch to a loss, a model to scores, one file per task.

Reading order: task (what they all have), windows (parts of a long text), language, masked,
translation, classification.
"""

from glassformer.training.tasks.classification import Classification
from glassformer.training.tasks.language_modeling import LanguageModeling
from glassformer.training.tasks.masked_modeling import MaskedModeling
from glassformer.training.tasks.task import Objective, Task
from glassformer.training.tasks.translation import Translation

TASKS: dict[str, type[Task]] = {
    "language": LanguageModeling,
    "masked": MaskedModeling,
    "translation": Translation,
    "classification": Classification,
}

__all__ = [
    "TASKS",
    "Classification",
    "LanguageModeling",
    "MaskedModeling",
    "Objective",
    "Task",
    "Translation",
]
