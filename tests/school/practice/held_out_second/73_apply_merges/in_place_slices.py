# correct: joins in place by slice assignment, with a pointer that does not move back
def encode(word, merges):
    pieces = [letter for letter in word]
    for left, right in merges:
        at = 0
        while at < len(pieces) - 1:
            if pieces[at] == left and pieces[at + 1] == right:
                pieces[at : at + 2] = [left + right]
            at += 1
    return pieces
