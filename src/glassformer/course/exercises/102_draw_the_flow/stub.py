def draw_attention():
    """Masked self-attention of one head, from x to out"""
    return """
        x -> q
        ...
    """


def draw_decoder_layer():
    """A decoder layer of the paper, from x and context to norm_3"""
    return """
        x -> self_attention
        ...
    """
