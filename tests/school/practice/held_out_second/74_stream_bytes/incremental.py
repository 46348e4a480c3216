# correct: Python's incremental decoder from codecs
import codecs


def stream(pieces):
    decoder = codecs.lookup("utf-8").incrementaldecoder()
    return [decoder.decode(piece) for piece in pieces]
