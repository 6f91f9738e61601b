"""Registers of processors, and tiles of sums that fit them."""

import llvmlite.binding as llvm
import pytest

from bnmf.kernels.processor import (
    TILE,
    WIDTH,
    Registers,
    Tile,
    registers_in_use,
    registers_of,
    target_features,
    tile_of,
)

AVX512, AVX2, SSE2, NEON = Registers(32, 8), Registers(16, 4), Registers(16, 2), Registers(32, 2)
FEATURES = {
    "AVX-512": ("x86_64", "+sse2,+avx,+avx2,+fma,+avx512f,+avx512vl", AVX512),
    "AVX2": ("x86_64", "+sse2,+avx,+avx2,+fma,-avx512f", AVX2),
    "AVX": ("AMD64", "+sse2,+avx,-avx2,-avx512f", AVX2),
    "SSE2": ("x86_64", "+sse2,-avx,-avx2,-avx512f", SSE2),
    "none named": ("x86_64", "", SSE2),
    "part of a name": ("x86_64", "+avx512vnni,+avxvnni", SSE2),
    "NEON on Linux": ("aarch64", "+neon,+fp-armv8", NEON),
    "NEON on a Mac": ("arm64", "", NEON),
    "NEON on Windows": ("ARM64", "", NEON),
}


@pytest.mark.parametrize(("machine", "features", "expected"), FEATURES.values(), ids=FEATURES)
def test_registers(machine, features, expected):
    assert registers_of(machine, features) == expected


@pytest.mark.parametrize(
    ("registers", "expected"),
    [(AVX512, Tile(8, 24, 20)), (AVX2, Tile(4, 8, 12)), (SSE2, Tile(2, 8, 4)), (NEON, Tile(4, 8, 12))],
    ids=["AVX-512", "AVX2", "SSE2", "NEON"],
)
def test_largest_tile_that_fits(registers, expected):
    tile = tile_of(registers)
    assert tile == expected
    assert registers_in_use(tile.rows, tile.columns, registers) < registers.number
    assert registers_in_use(tile.rows, tile.odd_columns, registers) <= registers.number
    assert WIDTH % tile.rows == 0  # submatrices of a system start at whole vectors
    for rows in (1, 2, 4, 8):
        for columns in (WIDTH, 2 * WIDTH, 3 * WIDTH):
            if rows * columns > tile.rows * tile.columns:
                assert registers_in_use(rows, columns, registers) >= registers.number


def test_tile_of_this_processor():
    assert TILE.rows in (1, 2, 4, 8)
    assert TILE.columns in (8, 16, 24)
    assert TILE.odd_columns in (4, 12, 20)


@pytest.mark.parametrize(
    ("registers", "rows", "columns", "expected"),
    [(AVX512, 8, 24, 24 + 3 + 1), (AVX512, 8, 20, 24 + 3 + 1), (AVX2, 4, 12, 12 + 3 + 1), (SSE2, 2, 8, 8 + 4 + 1)],
)
def test_registers_in_use(registers, rows, columns, expected):
    """Those of the sums, of one line, and of one broadcast number."""
    assert registers_in_use(rows, columns, registers) == expected


def test_features_can_be_set(monkeypatch):
    host = llvm.get_host_cpu_features().flatten()
    monkeypatch.setattr("bnmf.kernels.processor.config.CPU_FEATURES", None)
    assert target_features() == host
    monkeypatch.setattr("bnmf.kernels.processor.config.CPU_FEATURES", "+avx,-avx512f")
    assert target_features() == "+avx,-avx512f"
