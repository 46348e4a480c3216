"""A class of learners as a folder of plain files: no server, no accounts.

class.toml says which exercises are open from which day, exercises/ holds the instructor's own, and
hand-ins/ what learners have handed in. Reading order: class_folder, new_exercise, hand_in,
class_overview. Builds on practice and the course plans.
"""
