# correct: lambdas and torch.add
import torch

post_norm = lambda x, sublayer, norm: norm(torch.add(sublayer(x), x))
pre_norm = lambda x, sublayer, norm: torch.add(sublayer(norm(x)), x)
