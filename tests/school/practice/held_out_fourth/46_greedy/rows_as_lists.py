# correct: every row is a Python list that knows whether it has ended
import torch


def greedy(model, source, begin, end, pad, max_new):
    rows = [[begin] for _ in range(len(source))]
    for _ in range(max_new):
        if all(end in row[1:] for row in rows):
            break
        logits = model(source, torch.tensor(rows))
        for row, last in zip(rows, logits[:, -1]):
            row.append(pad if end in row[1:] else int(last.argmax()))
    return torch.tensor([row[1:] for row in rows])
