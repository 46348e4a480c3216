"""The programs one learns with: the lab, practice, chapters and the quiz.

Their content is in course. progress stores what a learner has read, answered and passed;
spaced_repetition says when a question is due, overview what is next. Imports render and what lies
below it.
"""
