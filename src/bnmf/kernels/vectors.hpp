// Vectors of eight numbers, on the vector extensions of GCC and Clang.
//
// There are three kinds: 64-bit floats, 64-bit words, and masks, whose lanes are all ones or all zeros. Operators act lane
// by lane. A vector has as many registers as eight lanes take on the processor that this is compiled for.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace bnmf {

using std::int64_t;
using std::uint64_t;

// Lanes of a vector.
constexpr int WIDTH = 8;
// Sums are computed for whole vectors of components, the last of which may be half as wide.
constexpr int HALF = WIDTH / 2;

// A submatrix whose sums stay in registers: its rows, the most columns of a tile of whole vectors, and of one whose last
// vector is half as wide. Sums, the numbers of one line and one broadcast number fit the registers of the processor.
struct Tile {
    int rows, columns, odd_columns;
};

// 64-bit lanes of a register, and the tile.
#if defined(__AVX512F__)
constexpr int LANES = 8;
constexpr Tile TILE{8, 24, 20};
#elif defined(__AVX__)
constexpr int LANES = 4;
constexpr Tile TILE{4, 8, 12};
#elif defined(__aarch64__)  // half as many lanes, in twice as many registers
constexpr int LANES = 2;
constexpr Tile TILE{4, 8, 12};
#else
constexpr int LANES = 2;
constexpr Tile TILE{2, 8, 4};
#endif
constexpr int PARTS = WIDTH / LANES;

// Registers of N lanes; memory that they are loaded from need not be aligned to more than one lane.
template <typename T, int N> struct RegisterOf {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
    typedef T unaligned __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T))));
};
template <typename T, int N> using Register = typename RegisterOf<T, N>::type;

template <typename T> struct Eight {
    Register<T, LANES> part[PARTS];
};
using Vector = Eight<double>;
using Words = Eight<uint64_t>;
using Mask = Eight<int64_t>;

constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double INFINITE = std::numeric_limits<double>::infinity();

// --- repetition at compile time

template <typename F, std::size_t... I> [[gnu::always_inline]] inline void unroll(F f, std::index_sequence<I...>) {
    (f(std::integral_constant<int, int(I)>{}), ...);
}

// Call f with 0 to N - 1 as constants.
template <int N, typename F> [[gnu::always_inline]] inline void unrolled(F f) {
    unroll(f, std::make_index_sequence<N>{});
}

// --- memory

template <int N, typename T> [[gnu::always_inline]] inline Register<T, N> load_register(const T* from) {
    return *reinterpret_cast<const typename RegisterOf<T, N>::unaligned*>(from);
}

template <int N, typename T, typename V> [[gnu::always_inline]] inline void store_register(T* to, V value) {
    *reinterpret_cast<typename RegisterOf<T, N>::unaligned*>(to) = value;
}

template <typename T> [[gnu::always_inline]] inline Eight<T> load(const T* from) {
    Eight<T> x;
    for (int i = 0; i < PARTS; ++i) x.part[i] = load_register<LANES>(from + i * LANES);
    return x;
}

template <typename T> [[gnu::always_inline]] inline void store(T* to, Eight<T> x) {
    for (int i = 0; i < PARTS; ++i) store_register<LANES>(to + i * LANES, x.part[i]);
}

template <typename T, std::size_t... I>
[[gnu::always_inline]] inline Register<T, sizeof...(I)> fill_register(T x, std::index_sequence<I...>) {
    return Register<T, sizeof...(I)>{(static_cast<void>(I), x)...};
}

template <int N, typename T> [[gnu::always_inline]] inline Register<T, N> broadcast_register(T x) {
    return fill_register(x, std::make_index_sequence<N>{});
}

template <typename T> [[gnu::always_inline]] inline Eight<T> broadcast(T x) {
    Eight<T> all;
    for (int i = 0; i < PARTS; ++i) all.part[i] = broadcast_register<LANES>(x);
    return all;
}

// --- operators

template <typename T> [[gnu::always_inline]] inline Eight<T> operator+(Eight<T> x, Eight<T> y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] += y.part[i];
    return x;
}
[[gnu::always_inline]] inline Vector operator-(Vector x, Vector y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] -= y.part[i];
    return x;
}
[[gnu::always_inline]] inline Vector operator*(Vector x, Vector y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] *= y.part[i];
    return x;
}
[[gnu::always_inline]] inline Vector operator/(Vector x, Vector y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] /= y.part[i];
    return x;
}
template <typename T> [[gnu::always_inline]] inline Eight<T> operator&(Eight<T> x, Eight<T> y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] &= y.part[i];
    return x;
}
template <typename T> [[gnu::always_inline]] inline Eight<T> operator|(Eight<T> x, Eight<T> y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] |= y.part[i];
    return x;
}
[[gnu::always_inline]] inline Words operator^(Words x, Words y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] ^= y.part[i];
    return x;
}
[[gnu::always_inline]] inline Words operator<<(Words x, int n) {
    for (int i = 0; i < PARTS; ++i) x.part[i] <<= n;
    return x;
}
[[gnu::always_inline]] inline Words operator>>(Words x, int n) {
    for (int i = 0; i < PARTS; ++i) x.part[i] >>= n;
    return x;
}
[[gnu::always_inline]] inline Mask operator>(Vector x, Vector y) {
    Mask where;
    for (int i = 0; i < PARTS; ++i) where.part[i] = (Register<int64_t, LANES>)(x.part[i] > y.part[i]);
    return where;
}
[[gnu::always_inline]] inline Mask operator>=(Vector x, Vector y) {
    Mask where;
    for (int i = 0; i < PARTS; ++i) where.part[i] = (Register<int64_t, LANES>)(x.part[i] >= y.part[i]);
    return where;
}
[[gnu::always_inline]] inline Mask operator<(Vector x, Vector y) { return y > x; }

// Return x in the lanes of a mask, and y in the others.
template <typename T> [[gnu::always_inline]] inline Eight<T> select(Mask where, Eight<T> x, Eight<T> y) {
    for (int i = 0; i < PARTS; ++i) x.part[i] = where.part[i] ? x.part[i] : y.part[i];
    return x;
}

// --- lane by lane

// Return x + y z, rounded once if the processor can, and twice otherwise.
#if defined(__FMA__)
[[gnu::always_inline]] inline __m128d add_product(__m128d x, __m128d y, __m128d z) { return _mm_fmadd_pd(y, z, x); }
[[gnu::always_inline]] inline __m256d add_product(__m256d x, __m256d y, __m256d z) { return _mm256_fmadd_pd(y, z, x); }
#if defined(__AVX512F__)
[[gnu::always_inline]] inline __m512d add_product(__m512d x, __m512d y, __m512d z) { return _mm512_fmadd_pd(y, z, x); }
#endif
#elif defined(__aarch64__)
[[gnu::always_inline]] inline float64x2_t add_product(float64x2_t x, float64x2_t y, float64x2_t z) {
    return vfmaq_f64(x, y, z);
}
#else
[[gnu::always_inline]] inline __m128d add_product(__m128d x, __m128d y, __m128d z) { return x + y * z; }
#endif

[[gnu::always_inline]] inline Vector add_product(Vector x, Vector y, Vector z) {
    for (int i = 0; i < PARTS; ++i) x.part[i] = add_product(x.part[i], y.part[i], z.part[i]);
    return x;
}

[[gnu::always_inline]] inline Vector square_root(Vector x) {
    for (int i = 0; i < PARTS; ++i)
        for (int lane = 0; lane < LANES; ++lane) x.part[i][lane] = __builtin_sqrt(x.part[i][lane]);
    return x;
}

[[gnu::always_inline]] inline Vector absolute(Vector x) {
    using Bits = Register<uint64_t, LANES>;
    for (int i = 0; i < PARTS; ++i)
        x.part[i] = (Register<double, LANES>)((Bits)x.part[i] & broadcast_register<LANES>(~uint64_t(0) >> 1));
    return x;
}

// Return the larger of x and y, ignoring NaN (like std::fmax).
[[gnu::always_inline]] inline Vector larger(Vector x, Vector y) {
    for (int i = 0; i < PARTS; ++i) {
        const auto larger = y.part[i] > x.part[i] ? y.part[i] : x.part[i];
        x.part[i] = x.part[i] == x.part[i] ? larger : y.part[i];
    }
    return x;
}

// Convert words below 2⁵³ to floats, exactly.
[[gnu::always_inline]] inline Vector to_floats(Words x) {
    using Floats = Register<double, LANES>;
    Vector out;
    for (int i = 0; i < PARTS; ++i) {
#if defined(__AVX512DQ__) || defined(__aarch64__)
        out.part[i] = __builtin_convertvector((Register<int64_t, LANES>)x.part[i], Floats);
#else  // the low and the high 32 bits become digits of 2⁵² and of 2⁸⁴
        const auto low = (Floats)((x.part[i] & 0xFFFFFFFFu) | 0x4330000000000000u);
        const auto high = (Floats)((x.part[i] >> 32) | 0x4530000000000000u);
        out.part[i] = (high - (0x1p84 + 0x1p52)) + low;
#endif
    }
    return out;
}

template <typename T> [[gnu::always_inline]] inline T extract_lane(const Eight<T>& x, int lane) {
    return x.part[lane / LANES][lane % LANES];
}

template <typename T> [[gnu::always_inline]] inline void insert_lane(Eight<T>& x, int lane, T value) {
    x.part[lane / LANES][lane % LANES] = value;
}

// --- masks as bits

// Return the signs of the lanes of a register as bits.
[[gnu::always_inline]] inline unsigned movemask(Register<int64_t, LANES> x) {
#if defined(__AVX512DQ__)
    return _mm512_movepi64_mask((__m512i)x);
#elif defined(__AVX__)
    return unsigned(_mm256_movemask_pd((__m256d)x));
#elif defined(__x86_64__)
    return unsigned(_mm_movemask_pd((__m128d)x));
#else
    unsigned bits = 0;
    for (int lane = 0; lane < LANES; ++lane) bits |= unsigned(x[lane] < 0) << lane;
    return bits;
#endif
}

// Return a mask as an integer, one bit per lane, lane 0 in the lowest bit.
[[gnu::always_inline]] inline unsigned mask_to_bits(Mask where) {
    unsigned bits = 0;
    for (int i = 0; i < PARTS; ++i) bits |= movemask(where.part[i]) << (i * LANES);
    return bits;
}

[[gnu::always_inline]] inline bool any(Mask where) {
    auto all = where.part[0];
    for (int i = 1; i < PARTS; ++i) all |= where.part[i];
    return movemask(all) != 0;
}

// Return a mask of the first n lanes, of none if n is negative, and of all if n is more than WIDTH.
[[gnu::always_inline]] inline Mask first_lanes(int64_t n) {
    alignas(64) static constexpr int64_t lanes[2 * WIDTH] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return load(lanes + WIDTH - (n < 0 ? 0 : n > WIDTH ? WIDTH : n));
}

// --- tables of pairs

template <std::size_t... I, typename V> [[gnu::always_inline]] inline auto concatenate(V x, V y, std::index_sequence<I...>) {
    return __builtin_shufflevector(x, y, int(I)...);
}

// Return rows of a two-column table one after the other: those of N lanes, each `step` lanes after the one before.
template <int N, int step> [[gnu::always_inline]] inline auto load_pairs(const double* table, Words index, int lane) {
    if constexpr (N == 1) {
        return load_register<2>(table + 2 * extract_lane(index, lane));
    } else {
        const auto x = load_pairs<N / 2, step>(table, index, lane);
        const auto y = load_pairs<N / 2, step>(table, index, lane + N / 2 * step);
        return concatenate(x, y, std::make_index_sequence<2 * N>{});
    }
}

template <int column, std::size_t... I, typename V>
[[gnu::always_inline]] inline V column_of_pairs(V even, V odd, std::index_sequence<I...>) {
    return __builtin_shufflevector(even, odd, int(I % 2 == 0 ? I + column : LANES + I - 1 + column)...);
}

// Read both columns of a two-column table, each lane from the row given by its index. Each row is one load; combining
// loads with shuffles is faster than the gather instruction of many processors.
[[gnu::always_inline]] inline void gather_pairs(const double* table, Words index, Vector& first, Vector& second) {
    for (int i = 0; i < PARTS; ++i) {
        const auto even = load_pairs<LANES / 2, 2>(table, index, i * LANES);
        const auto odd = load_pairs<LANES / 2, 2>(table, index, i * LANES + 1);
        first.part[i] = column_of_pairs<0>(even, odd, std::make_index_sequence<LANES>{});
        second.part[i] = column_of_pairs<1>(even, odd, std::make_index_sequence<LANES>{});
    }
}

// --- eight vectors at a time

template <int D, std::size_t... I, typename V>
[[gnu::always_inline]] inline void exchange_lanes(V& x, V& y, std::index_sequence<I...>) {
    const V upper = __builtin_shufflevector(x, y, int((I & D) == 0 ? I : LANES + I - D)...);
    y = __builtin_shufflevector(x, y, int((I & D) == 0 ? I + D : LANES + I)...);
    x = upper;
}

// Exchange the lanes of x whose number has the bit D with the lanes of y, D to the left, that do not have it.
template <int D> [[gnu::always_inline]] inline void exchange(Vector& x, Vector& y) {
    if constexpr (D < LANES) {
        for (int i = 0; i < PARTS; ++i) exchange_lanes<D>(x.part[i], y.part[i], std::make_index_sequence<LANES>{});
    } else {
        for (int i = 0; i < PARTS; ++i)
            if ((i & (D / LANES)) == 0) std::swap(x.part[i + D / LANES], y.part[i]);
    }
}

// Exchange the off-diagonal submatrices of size D of the rows: one step of a recursive transposition.
template <int D, int N> [[gnu::always_inline]] inline void exchange_submatrices(Vector (&rows)[N]) {
    unrolled<N>([&](auto i) __attribute__((always_inline)) {
        if constexpr ((i & D) == 0) exchange<D>(rows[i], rows[i + D]);
    });
}

// Return a vector whose halves are in two places.
[[gnu::always_inline]] inline Vector load_halves(const double* low, const double* high) {
    Vector x;
    if constexpr (PARTS == 1)
        x.part[0] = concatenate(load_register<HALF>(low), load_register<HALF>(high), std::make_index_sequence<LANES>{});
    else
        unrolled<PARTS>([&](auto i) __attribute__((always_inline)) {
            x.part[i] = load_register<LANES>(i * LANES < HALF ? low + i * LANES : high + i * LANES - HALF);
        });
    return x;
}

// Load N numbers, eight or four, from each of eight places, and transpose them: lane j of row i has number i of place(j).
template <int N, typename F> [[gnu::always_inline]] inline void load_transposed(F place, Vector (&rows)[N]) {
    unrolled<N>([&](auto i) __attribute__((always_inline)) {
        constexpr int from = i % HALF, first = i / HALF * HALF;
        rows[i] = load_halves(place(from) + first, place(from + HALF) + first);
    });
    exchange_submatrices<2>(rows);
    exchange_submatrices<1>(rows);
}

// Add pairs of rows D apart: each keeps the sums of two rows, in the order of the transposition.
template <int D> [[gnu::always_inline]] inline void add_halves(Vector (&rows)[WIDTH]) {
    unrolled<D>([&](auto i) __attribute__((always_inline)) {
        exchange<D>(rows[i], rows[i + D]);
        rows[i] = rows[i] + rows[i + D];
    });
}

// Return a vector with the sum of each of the eight vectors that start at `from`.
[[gnu::always_inline]] inline Vector row_sums(const double* from) {
    Vector rows[WIDTH];
    unrolled<WIDTH>([&](auto i) __attribute__((always_inline)) { rows[i] = load(from + i * WIDTH); });
    add_halves<4>(rows);
    add_halves<2>(rows);
    add_halves<1>(rows);
    return rows[0];
}

// Return the sum of the lanes of a vector, from the first to the last.
[[gnu::always_inline]] inline double lane_sum(Vector x) {
    double total = 0.0;
    for (int lane = 0; lane < WIDTH; ++lane) total += extract_lane(x, lane);
    return total;
}

// Return the largest lane of a vector of nonnegative numbers.
[[gnu::always_inline]] inline double lane_maximum(Vector x) {
    double largest = 0.0;
    for (int lane = 0; lane < WIDTH; ++lane) {
        const double number = extract_lane(x, lane);
        largest = number > largest ? number : largest;
    }
    return largest;
}

}  // namespace bnmf
