"""The programs one learns with: the lab, practice, chapters and the quiz.

Their content is in course. Imports render and what lies below it.
"""
