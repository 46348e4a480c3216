# correct: other letters, the scale inside the weights of the queries, and one einsum for the end
from torch import einsum


def multi_head(x, context, w_q, w_k, w_v, w_o):
    queries = einsum("nic,hce->nhie", x, w_q / w_q.shape[2] ** 0.5)
    keys = einsum("njc,hce->nhje", context, w_k)
    values = einsum("njc,hce->nhje", context, w_v)
    weights = einsum("nhie,nhje->nhij", queries, keys).softmax(3)
    return einsum("nhij,nhje,hec->nic", weights, values, w_o), weights
