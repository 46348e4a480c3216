# correct: 逐行计算，再拼回原来的形状
import torch


def softmax(scores):
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]):
        e = (row - row.max()).exp()  # 减去最大值，避免溢出
        rows.append(e / e.sum())
    return torch.stack(rows).reshape(scores.shape)
