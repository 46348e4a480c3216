# mistake: joins by replacing in a string with spaces, which also matches where the first piece is only the end of a longer one
def encode(word, merges):
    text = " ".join(word)
    for a, b in merges:
        text = text.replace(a + " " + b, a + b)
    return text.split(" ")
