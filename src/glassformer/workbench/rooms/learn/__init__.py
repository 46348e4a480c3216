"""Learn: the course under a browser, on the same progress and the same folder as the terminal's.

course_map (the whole course and what is next), course_plans, chapters, experiments, exercises,
questions, capstone: each has the jobs of its part; records is where progress is read and written,
grading_thread where learners' code is run. Texts are never markup, but for formulas, which are
MathML made from the course itself.
"""
