# correct: the incremental decoder of the standard library
import codecs


def stream(pieces):
    decoder = codecs.getincrementaldecoder("utf-8")()
    return [decoder.decode(piece) for piece in pieces]
