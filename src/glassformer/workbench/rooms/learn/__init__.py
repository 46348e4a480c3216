"""Learn: the course under a browser, on the same progress and the same folder as the terminal's.

course_map (the whole course and what is next), chapters, experiments, exercises, questions: each
has the jobs of its part; records is where progress is read and written. Texts are never markup, but
for formulas, which are MathML made from the course itself.
"""
