# correct: a function and a sum of products, as tuples
from math import cos, sin


def encode(p):
    return (sin(p), cos(p), sin(p / 10), cos(p / 10))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


position_0, position_1, position_2 = [list(encode(p)) for p in range(3)]
dot_0_1 = dot(position_0, position_1)
dot_1_2 = dot(position_1, position_2)
dot_0_2 = dot(position_0, position_2)
