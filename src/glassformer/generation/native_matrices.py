"""Matrices as the C code reads them (native_stack.c), and rows of the output matrix alone."""

import ctypes
from collections.abc import Sequence
from ctypes import byref

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.functional.quantized import find_numbers
from glassformer.generation import native_structures as structures
from glassformer.generation.output_selection import select_rows
from glassformer.models.decoder_weights import Linear

_MOST_PANELS = 1 << 29  # bytes
_MANY = 128  # rows: laying out a matrix takes about as long as multiplying it by a hundred


class Matrices:
    """Describes matrices; those that are laid out in panels are multiplied by many rows faster."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.panels: dict[int, Tensor] = {}  # by the address of the matrix

    def describe(self, linear: Linear | None) -> structures.Linear:
        """The addresses of a matrix, its scales, its bias and its panels."""
        if linear is None:
            return structures.Linear()
        weight, (numbers, scale) = linear.weight, find_numbers(linear.weight)
        panels = self.panels.get(numbers.data_ptr())
        described = structures.Linear(
            bias=None if linear.bias is None else linear.bias.data_ptr(),
            panels=None if panels is None else panels.data_ptr(),
            n_out=weight.shape[0],
            n_in=weight.shape[1],
        )
        if scale is None:
            described.weight = numbers.data_ptr()
        else:
            described.integers, described.scale = numbers.data_ptr(), scale.data_ptr()
        return described

    def lay_out(self, linears: Sequence[Linear]) -> None:
        """Keep these matrices a second time, in panels, unless that takes too much memory."""
        matrices = [self.describe(each) for each in linears]
        sizes = [self.library.panel_bytes(byref(each)) for each in matrices]
        if sum(sizes) > _MOST_PANELS:
            return
        for linear, matrix, size in zip(linears, matrices, sizes, strict=True):
            if size:
                panels = torch.empty(size, dtype=torch.uint8, device="cpu")
                self.library.lay_out(byref(matrix), panels.data_ptr())
                self.panels[find_numbers(linear.weight)[0].data_ptr()] = panels


class SelectedHead:
    """The rows of an output matrix for some tokens, in ascending order."""

    def __init__(self, head: Linear, tokens: Int[Tensor, " n"], library: ctypes.CDLL) -> None:
        self.tokens, self.linear = tokens, select_rows(head, tokens)
        self.matrices = Matrices(library)
        self.structure = self.matrices.describe(self.linear)
        self.n_rows = 0  # that were multiplied so many or more at a time

    def expect_rows(self, n: int) -> None:
        """Lay them out in panels, once so many rows were multiplied that it pays."""
        if n < self.matrices.library.least_rows() or self.n_rows >= _MANY:
            return
        self.n_rows += n
        if self.n_rows >= _MANY:
            self.matrices.lay_out([self.linear])
            self.structure = self.matrices.describe(self.linear)
