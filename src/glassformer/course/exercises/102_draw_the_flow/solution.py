"""The flow of attention and of a decoder layer, one arrow per line."""


def draw_attention() -> str:
    """Masked self-attention of one head, from x to out"""
    return """
        x -> q
        x -> k
        x -> v

        q -> scores
        k -> scores
        scores -> scale
        scale -> mask
        mask -> softmax

        softmax -> out
        v -> out
    """


def draw_decoder_layer() -> str:
    """A decoder layer of the paper, from x and context to norm_3"""
    return """
        x -> self_attention
        self_attention -> add_1
        x -> add_1               # around the self-attention
        add_1 -> norm_1

        norm_1 -> cross_q        # the target asks
        context -> cross_k       # the source is asked
        context -> cross_v
        cross_q -> cross_attention
        cross_k -> cross_attention
        cross_v -> cross_attention
        cross_attention -> add_2
        norm_1 -> add_2          # around the cross-attention
        add_2 -> norm_2

        norm_2 -> feed_forward
        feed_forward -> add_3
        norm_2 -> add_3          # around the feed-forward network
        add_3 -> norm_3
    """
