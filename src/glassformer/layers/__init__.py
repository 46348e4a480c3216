"""The parts a Transformer is built of, as nn.Modules that take plain keyword arguments.

Reading order: norm, feed_forward, experts, attention (projections around a `core`),
latent_attention, block, embedding, patches, lora. Imports attention and errors; knows no whole
model.
"""

from glassformer.layers.attention import Core, CrossAttention, SelfAttention
from glassformer.layers.block import Block
from glassformer.layers.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding
from glassformer.layers.experts import ExpertLinear, MixtureOfExperts, Router, Routing
from glassformer.layers.feed_forward import FeedForward
from glassformer.layers.latent_attention import LatentAttention
from glassformer.layers.lora import LoRALinear
from glassformer.layers.norm import RMSNorm, norm_maker
from glassformer.layers.patches import PatchEmbedding

__all__ = [
    "Block",
    "Core",
    "CrossAttention",
    "ExpertLinear",
    "FeedForward",
    "LatentAttention",
    "LearnedPositions",
    "LoRALinear",
    "MixtureOfExperts",
    "PatchEmbedding",
    "RMSNorm",
    "Router",
    "Routing",
    "SelfAttention",
    "SinusoidalPositions",
    "TokenEmbedding",
    "norm_maker",
]
