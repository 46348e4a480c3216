# correct: names for all sizes, tuples joined from parts
batch, heads = (4,), (8,)
source, target = (11,), (7,)
width, head_width = (512,), (512 // 8,)

source_mask = batch + (1, 1) + source
context = batch + source + width
encoder_scores = batch + heads + source + source
decoder_scores = batch + heads + target + target
cross_q = batch + heads + target + head_width
cross_k = batch + heads + source + head_width
cross_scores = batch + heads + target + source
hidden = batch + target + (2048,)
logits = batch + target + (10_000,)
