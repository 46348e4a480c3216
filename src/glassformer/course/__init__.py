"""The content of the course: chapters, exercises, questions, and the texts of experiments.

Nothing here is imported; school reads these files, and shows and runs what they say.
"""
