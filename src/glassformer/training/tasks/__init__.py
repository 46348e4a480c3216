"""Training tasks, one file each: from batches to losses, and from a model to scores.

Reading order: task (the interface), windows (parts of a long text), language_modeling,
masked_modeling, translation (packed_pairs: without padding), classification.
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
