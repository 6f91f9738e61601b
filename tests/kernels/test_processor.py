"""Registers of processors, and tiles of sums that fit them."""

import llvmlite.binding as llvm
import pytest

from bnmf.kernels.processor import TILE, WIDTH, Registers, Tile, registers_of, target_features, tile_of

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


def registers_in_use(tile, registers):
    """Return how many registers hold the sums, the vectors of one line, and one broadcast number."""
    per_vector = WIDTH // registers.lanes
    return tile.rows * tile.vectors * per_vector + tile.vectors * per_vector + 1


@pytest.mark.parametrize(
    ("registers", "expected"),
    [(AVX512, Tile(8, 3)), (AVX2, Tile(4, 1)), (SSE2, Tile(2, 1)), (NEON, Tile(4, 1))],
    ids=["AVX-512", "AVX2", "SSE2", "NEON"],
)
def test_largest_tile_that_fits(registers, expected):
    tile = tile_of(registers)
    assert tile == expected
    assert registers_in_use(tile, registers) < registers.number
    assert WIDTH % tile.rows == 0  # submatrices of a system start at whole vectors
    larger = [Tile(rows, vectors) for rows in (1, 2, 4, 8) for vectors in (1, 2, 3)]
    for other in larger:
        if other.rows * other.vectors > tile.rows * tile.vectors:
            assert registers_in_use(other, registers) >= registers.number


def test_tile_of_this_processor():
    assert TILE.rows in (1, 2, 4, 8)
    assert TILE.vectors in (1, 2, 3)


def test_features_can_be_set(monkeypatch):
    host = llvm.get_host_cpu_features().flatten()
    monkeypatch.setattr("bnmf.kernels.processor.config.CPU_FEATURES", None)
    assert target_features() == host
    monkeypatch.setattr("bnmf.kernels.processor.config.CPU_FEATURES", "+avx,-avx512f")
    assert target_features() == "+avx,-avx512f"
