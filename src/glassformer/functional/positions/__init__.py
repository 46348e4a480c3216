"""Positional encodings: sinusoidal, rotary (RoPE) and the ways to extend RoPE to longer texts."""
