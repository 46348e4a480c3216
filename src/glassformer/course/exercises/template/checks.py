from glassformer.school.practice.cases import battery


def inputs(draw):
    B, L, C = draw.sizes(3)
    return {"x": draw.normal(B, L, C)}


def call(m, x):
    return m.exercise_name(x)


def cases(draw):
    yield from battery(draw, inputs, call, names=("centred",))
