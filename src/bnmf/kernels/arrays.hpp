// The border to Python: arrays that are checked before a pointer to them is taken, and memory to work in.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "draw.hpp"

namespace bnmf {

namespace nb = nanobind;

// Arrays that are never converted: results would be written to a copy.
template <typename A> struct Exact : A {
    using A::A;
};

}  // namespace bnmf

template <typename A> struct nanobind::detail::type_caster<bnmf::Exact<A>> {
    NB_TYPE_CASTER(bnmf::Exact<A>, make_caster<A>::Name)

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<A> caster;
        if (!caster.from_python(source, flags & ~uint8_t(cast_flags::convert), cleanup)) return false;
        static_cast<A&>(value) = std::move(caster.value);
        return true;
    }
};

namespace bnmf {

template <typename T, int N> using Array = Exact<nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>>;
using Numbers = Array<const double, 1>;
using Matrix = Array<const double, 2>;
using Results = Array<double, 1>;
using WritableMatrix = Array<double, 2>;
using Pointers = Array<const int64_t, 1>;
using Positions = Array<const uint32_t, 1>;
using Flags = Array<const uint8_t, 1>;
using Ids = Array<const uint64_t, 1>;
using Pair = std::pair<uint64_t, uint64_t>;  // the two words of a key
using Range = std::pair<int64_t, int64_t>;   // the first, and the one after the last

inline Key key_of(const Pair& words) { return {words.first, words.second}; }

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// Return a pointer to an array, which must have n elements.
template <typename A> auto pointer(const A& array, int64_t n, const char* name) {
    if (int64_t(array.size()) != n)
        throw std::invalid_argument(std::string(name) + " must have " + std::to_string(n) + " elements, got " +
                                    std::to_string(array.size()));
    return array.data();
}

// The same, or null if the array is not given.
template <typename A> auto pointer_or_null(const std::optional<A>& array, int64_t n, const char* name) {
    return array ? pointer(*array, n, name) : nullptr;
}

// Return numbers of which there is one for all, or one for each of n.
inline Strided one_or_each(const Numbers& array, int64_t n, const char* name) {
    return array.size() == 1 ? Strided{array.data(), 0} : Strided{pointer(array, n, name), 1};
}

// Return whether numbers are of single precision rather than double.
template <typename A> bool is_single(const A& array) {
    if (array.dtype() == nb::dtype<float>()) return true;
    if (array.dtype() != nb::dtype<double>()) throw nb::type_error("values and draws must be floats");
    return false;
}

// Arguments of a class by name, which it keeps alive.
class Arguments {
public:
    Arguments(nb::kwargs given) : given_(std::move(given)) {}

    template <typename T> T get(const char* name) const {
        T value;
        const nb::handle given = PyDict_GetItemString(given_.ptr(), name);  // null if there is none
        if (!nb::try_cast(given ? given : nb::handle(Py_None), value))
            throw nb::type_error((std::string(name) + " has a wrong type").c_str());
        return value;
    }

    template <typename A> auto pointer(const char* name, int64_t n) const { return bnmf::pointer(get<A>(name), n, name); }

    template <typename A> auto pointer_or_null(const char* name, int64_t n) const {
        return bnmf::pointer_or_null(get<std::optional<A>>(name), n, name);
    }

    Strided one_or_each(const char* name, int64_t n) const { return bnmf::one_or_each(get<Numbers>(name), n, name); }

    // Return the scales of n columns, which are all 1 if none are given.
    Strided scales_of_columns(int64_t n) const {
        static const double one = 1.0;
        const double* given = pointer_or_null<Numbers>("entry_scale", n);
        return given != nullptr ? Strided{given, 1} : Strided{&one, 0};
    }

private:
    nb::kwargs given_;
};

// Numbers that start at the alignment of a vector, so that no vector straddles two cache lines. They grow on demand, and
// what is too small is freed first.
class Buffer {
public:
    double* reserve(int64_t size) {
        const std::size_t n = padded_length(size) / WIDTH;
        if (n > lines_.size()) {
            lines_ = std::vector<Line>();  // {} would keep the memory
            lines_.resize(n);
        }
        return reinterpret_cast<double*>(lines_.data());
    }

private:
    struct alignas(WIDTH * sizeof(double)) Line {
        double numbers[WIDTH];
    };
    std::vector<Line> lines_;
};

// Memory of one thread. Parts of a sweep that come one after the other share `shared`: the factor that a half-sweep is
// given, and what moves need. `n_uses` says how often, so that a half-sweep notices that its factor is gone.
struct Memory {
    Buffer shared, tile;
    std::vector<int64_t> offsets;
    StreamWords words;
    int64_t n_uses = 0;

    double* take(int64_t size) {
        ++n_uses;
        return shared.reserve(size);
    }
};

// The data of `Data`, checked.
class DataArrays : public Data {
public:
    explicit DataArrays(Arguments given) : Data{}, arguments_(std::move(given)) {
        const auto missing = arguments_.get<Flags>("lists_missing");
        n_rows = int64_t(missing.size());
        n_columns = arguments_.get<int64_t>("n_columns");
        lists_missing = missing.data();
        n_listed = set_lists("indptr", "indices", indptr, indices);
        const auto listed = arguments_.get<Exact<nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>>>("values");
        const void* numbers = pointer(listed, n_listed, "values");
        if (listed.dtype() == nb::dtype<uint8_t>())
            byte_values = static_cast<const uint8_t*>(numbers);
        else if (is_single(listed))
            single_values = static_cast<const float*>(numbers);
        else
            values = static_cast<const double*>(numbers);
        dense = arguments_.pointer_or_null<Matrix>("dense", n_rows * n_columns);
        if (arguments_.get<std::optional<Pointers>>("stored_indptr")) {
            const int64_t n_stored = set_lists("stored_indptr", "stored_indices", stored_indptr, stored_indices);
            stored_values = arguments_.pointer<Numbers>("stored_values", n_stored);
        }
        longest = has_matrix() ? n_columns : 0;
        for (int64_t row = 0; row < n_rows; ++row) {
            longest = std::max(longest, indptr[row + 1] - indptr[row]);
            require(has_matrix() || !lists_missing[row], "rows that list missing positions need a matrix");
        }
    }

    int64_t n_listed;  // over all rows

    // Check that factors have the rows and columns of the data.
    void check_factors(int64_t n_rows_W, int64_t n_rows_Z) const {
        require(n_rows_W == n_rows, "W must have as many rows as the data");
        require(n_rows_Z == n_columns, "Z must have as many rows as the data have columns");
    }

private:
    // Set lists of positions, row by row, after a check of both arrays, and return the number of positions.
    int64_t set_lists(const char* name, const char* of, const int64_t*& pointers, const uint32_t*& positions) const {
        const auto array = arguments_.get<Positions>(of);
        const int64_t n = int64_t(array.size());
        pointers = arguments_.pointer<Pointers>(name, n_rows + 1);
        positions = array.data();
        bool is_ascending = pointers[0] >= 0 && pointers[n_rows] <= n;
        for (int64_t row = 0; row < n_rows; ++row) is_ascending &= pointers[row] <= pointers[row + 1];
        require(is_ascending, "indptr must ascend, from 0 at least to the number of positions at most");
        require(std::all_of(positions, positions + n, [&](uint32_t column) { return column < n_columns; }),
                "positions must be less than n_columns");
        return n;
    }

    Arguments arguments_;
};

// The coefficients of `Prior`, and the arrays that hold them, of shape (1 or rows, components).
class PriorArrays : public Prior {
public:
    PriorArrays(Matrix linear, Matrix quadratic, double pairwise, double max_rate, bool paper_rule,
                std::optional<Matrix> absolute)
        : Prior{strided(linear), strided(quadratic), absolute ? strided(*absolute) : Strided{}, pairwise, max_rate,
                paper_rule},
          matrices_{linear, quadratic} {
        if (absolute) matrices_.push_back(*absolute);
    }

    // Return the coefficients for a factor, after a check of their shapes.
    Prior of_factor(int64_t n_rows, int64_t n_components) const {
        for (const Matrix& matrix : matrices_)
            require((matrix.shape(0) == 1 || int64_t(matrix.shape(0)) == n_rows) &&
                        int64_t(matrix.shape(1)) == n_components,
                    "the coefficients of a prior must have the shape (1 or rows, components) of the factor");
        return *this;
    }

private:
    static Strided strided(const Matrix& matrix) {
        return {matrix.data(), matrix.shape(0) > 1 ? int64_t(matrix.shape(1)) : 0};
    }

    std::vector<Matrix> matrices_;
};

void bind_testing(nb::module_& module);

}  // namespace bnmf
