# correct: lets math compute the vectors and their products
import math


def encode(p):
    return [f(p / 100 ** (i / 2)) for i in range(2) for f in (math.sin, math.cos)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


position_0, position_1, position_2 = encode(0), encode(1), encode(2)
dot_0_1 = dot(position_0, position_1)
dot_1_2 = dot(position_1, position_2)
dot_0_2 = dot(position_0, position_2)
