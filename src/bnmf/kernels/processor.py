"""The vector registers of the processor that the kernels are compiled for."""

import platform
from typing import NamedTuple

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from numba import config

# Lanes of a vector. It takes one AVX-512 register, two AVX2 registers or four NEON registers.
WIDTH = 8
# Sums are computed for whole vectors of components, the last of which may be half as wide.
HALF = WIDTH // 2


class Registers(NamedTuple):
    """The registers of a processor.

    Attributes
    ----------
    number : int
        How many there are.
    lanes : int
        64-bit floats in one.
    """

    number: int
    lanes: int


class Tile(NamedTuple):
    """A submatrix whose sums stay in registers.

    Attributes
    ----------
    rows : int
        Rows of any tile.
    columns : int
        Most columns of a tile of whole vectors.
    odd_columns : int
        Most columns of a tile whose last vector is half as wide.
    """

    rows: int
    columns: int
    odd_columns: int


def registers_of(machine, features):
    """Return the registers of a kind of machine with the given LLVM features, such as ``"+avx,+avx2,-avx512f"``."""
    features = set(features.split(","))
    if machine.lower() in ("aarch64", "arm64"):
        return Registers(32, 2)
    if "+avx512f" in features:
        return Registers(32, 8)
    return Registers(16, 4 if "+avx" in features else 2)


def tile_of(registers):
    """Return the largest tile that fits: its sums, the numbers of one line and one broadcast number."""
    sizes = [(rows, vectors * WIDTH) for vectors in (3, 2, 1) for rows in (8, 4, 2, 1)]
    rows, columns = max(
        (size for size in sizes if registers_in_use(*size, registers) < registers.number),
        key=lambda size: (size[0] * size[1], size[0]),
    )
    odd = [HALF + vectors * WIDTH for vectors in (0, 1, 2)]
    return Tile(rows, columns, max(size for size in odd if registers_in_use(rows, size, registers) <= registers.number))


def registers_in_use(rows, columns, registers):
    """Return how many registers hold the sums of a tile, the numbers of one line and one broadcast number."""
    return (rows + 1) * -(-columns // registers.lanes) + 1


def target_features():
    """Return the LLVM features that Numba compiles for: those of this processor, or NUMBA_CPU_FEATURES."""
    features = config.CPU_FEATURES  # type: ignore[attr-defined]
    return llvm.get_host_cpu_features().flatten() if features is None else features


TILE = tile_of(registers_of(platform.machine(), target_features()))
