# mistake: multiplies the keys with themselves
def scores(q, k):
    return k @ k.transpose(-2, -1)
