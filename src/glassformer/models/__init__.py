"""Whole models: an encoder, a decoder, both; and recurrent ones to compare with.

Reading order: variants, config, stack, heads, decoder, encoder, encoder_decoder, vision, cache,
module_list, learning_forward and decoder_weights (the tensors of a decoder by role), presets, lora,
quantization, routing (of experts), parameters and describe (counting), recording and shapes (every
shape of a run), checkpoints (saved models), pretrained (the models of the package); recurrent is
independent.
Imports layers, attention and text; knows nothing of training, generation or drawing.
"""

from glassformer.models.cache import ModelCache
from glassformer.models.config import Config, Dropout, Norms, Output, Positions
from glassformer.models.decoder import Decoder
from glassformer.models.decoder_weights import DecoderWeights
from glassformer.models.encoder import Encoder
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.lora import (
    add_lora,
    load_lora,
    merge_lora,
    remove_lora,
    save_lora,
    unmerge_lora,
)
from glassformer.models.output_heads import ClassificationHead
from glassformer.models.presets import PRESETS, build
from glassformer.models.quantization import quantize
from glassformer.models.routing import watch_routing
from glassformer.models.variants import Experts, Latent, Patches
from glassformer.models.vision import VisionEncoder

__all__ = [
    "PRESETS",
    "ClassificationHead",
    "Config",
    "Decoder",
    "DecoderWeights",
    "Dropout",
    "Encoder",
    "EncoderDecoder",
    "Experts",
    "Latent",
    "ModelCache",
    "Norms",
    "Output",
    "Patches",
    "Positions",
    "VisionEncoder",
    "add_lora",
    "build",
    "load_lora",
    "merge_lora",
    "quantize",
    "remove_lora",
    "save_lora",
    "unmerge_lora",
    "watch_routing",
]
