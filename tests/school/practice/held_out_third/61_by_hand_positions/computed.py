# correct: computed with math
from math import cos, sin


def pe(p):
    return [sin(p), cos(p), sin(p / 10), cos(p / 10)]


position_0, position_1, position_2 = pe(0), pe(1), pe(2)
dot = lambda a, b: sum(x * y for x, y in zip(a, b))
dot_0_1 = dot(position_0, position_1)
dot_1_2 = dot(position_1, position_2)
dot_0_2 = dot(position_0, position_2)
