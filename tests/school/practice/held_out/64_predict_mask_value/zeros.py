# mistake: expects softmax to give zeros for a fully masked row.
answer = "a"
