"""The front page's three doors: to learn, to look inside a model, to build one."""

DOORS = {
    "en": (
        (
            "Learn how it works",
            "From the first dot product to a Transformer you have written yourself.",
            (
                ("The first hour, step by step", "guides/first-hour.md"),
                ("Begin with chapter 1", "learn/01-why.md"),
                ("Exercises, graded on your machine", "practice/index.md"),
                ("Experiments with a verdict", "lab/index.md"),
                ("Interview questions", "quiz/index.md"),
                ("Index of terms", "guides/terms.md"),
            ),
        ),
        (
            "Look inside your model",
            "Every number of attention, in any model of transformers, at real lengths.",
            (
                ("From looking to knowing", "guides/from-looking-to-knowing.md"),
                ("The workbench in the browser", "guides/workbench.md"),
                ("Which architectures are recorded", "guides/watched-architectures.md"),
                ("Watch a model that vLLM serves", "guides/engines.md"),
            ),
        ),
        (
            "Build and train",
            "A small, fast, readable Transformer in PyTorch.",
            (
                ("From the formula to the code", "guides/from-formula-to-code.md"),
                ("Training, from one core to many machines", "guides/training.md"),
                ("API: attention", "reference/attention.md"),
                ("Measured results", "project/results.md"),
            ),
        ),
    ),
    "zh": (
        (
            "学习原理",
            "从第一个点积，到你亲手写出的 Transformer。",
            (
                ("第一个小时，一步一步来", "guides/first-hour.md"),
                ("从第 1 章开始", "learn/01-why.md"),
                ("练习：在你的机器上批改", "practice/index.md"),
                ("实验：每个都有结论", "lab/index.md"),
                ("面试问题", "quiz/index.md"),
                ("术语索引", "guides/terms.md"),
            ),
        ),
        (
            "看进你的模型",
            "注意力的每一个数，适用于 transformers 的任何模型，也适用于真实长度的文本。",
            (
                ("从看到到知道", "guides/from-looking-to-knowing.md"),
                ("浏览器中的工作台", "guides/workbench.md"),
                ("能记录哪些架构（英文）", "guides/watched-architectures.md"),
                ("在 vLLM 服务时观察模型", "guides/engines.md"),
            ),
        ),
        (
            "构建与训练",
            "一个小巧、快速、易读的 PyTorch Transformer。",
            (
                ("从公式到代码", "guides/from-formula-to-code.md"),
                ("训练：从单核到多台机器", "guides/training.md"),
                ("API：注意力", "reference/attention.md"),
                ("实测结果（英文）", "project/results.md"),
            ),
        ),
    ),
}


def add_doors(front: str, code: str) -> str:
    """The front page with a door for each kind of reader above its picture."""
    doors = "\n\n".join(
        f"{_raw('<section>')}\n\n**{title}**\n\n{about}\n\n"
        + "\n".join(f"- [{name}]({place})" for name, place in links)
        + f"\n\n{_raw('</section>')}"
        for title, about, links in DOORS[code]
    )
    head, picture, rest = front.partition("\n![")
    doors = f"{_raw('<div class=doors>')}\n\n{doors}\n\n{_raw('</div>')}"
    return f"{head}\n{doors}\n{picture}{rest}"


def _raw(html: str) -> str:
    return f"```{{raw}} html\n{html}\n```"
