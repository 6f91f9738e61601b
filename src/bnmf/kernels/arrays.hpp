// The border to Python: arrays that are checked before a pointer to them is taken, and memory to work in.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <memory>
#include <new>
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

inline void require(bool condition, const char* message, const char* name = "") {
    if (!condition) throw std::invalid_argument(std::string(name) + message);
}

template <typename A> void require_size(const A& array, int64_t size, const char* name) {
    if (int64_t(array.size()) != size)
        throw std::invalid_argument(std::string(name) + " must have " + std::to_string(size) + " elements, got " +
                                    std::to_string(array.size()));
}

// Return numbers of which there is one for all, or one for each of n.
inline Strided one_or_each(const Numbers& array, int64_t n, const char* name) {
    if (array.size() != 1) require_size(array, n, name);
    return {array.data(), array.size() > 1};
}

// Return a pointer to an array of n elements, or null if it is not given.
template <typename A> auto pointer_or_null(const std::optional<A>& array, int64_t n, const char* name) {
    if (array) require_size(*array, n, name);
    return array ? array->data() : nullptr;
}

// Return the scales of n columns, which are all 1 if none are given.
inline Strided scales_of(const std::optional<Numbers>& scale, int64_t n) {
    static const double one = 1.0;
    const double* given = pointer_or_null(scale, n, "entry_scale");
    return given != nullptr ? Strided{given, 1} : Strided{&one, 0};
}

// Numbers that start at the alignment of a vector, so that no vector straddles two cache lines. They grow on demand, and
// what is too small is freed first.
class Buffer {
public:
    double* reserve(int64_t size) {
        if (size > size_) {
            data_.reset();
            size_ = 0;
            data_.reset(static_cast<double*>(::operator new(size * sizeof(double), ALIGNMENT)));
            size_ = size;
        }
        return data_.get();
    }

private:
    static constexpr std::align_val_t ALIGNMENT{WIDTH * sizeof(double)};
    struct Delete {
        void operator()(double* data) const { ::operator delete(data, ALIGNMENT); }
    };
    std::unique_ptr<double, Delete> data_;
    int64_t size_ = 0;
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

// The data of `Data`, checked. The arrays must outlive it.
class DataArrays : public Data {
public:
    using Values = Exact<nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

    DataArrays(Pointers indptr, Positions indices, Values values, Flags lists_missing, std::optional<Matrix> dense,
               std::optional<Pointers> stored_indptr, std::optional<Positions> stored_indices,
               std::optional<Numbers> stored_values, int64_t n_columns)
        : Data{}, n_listed(int64_t(indices.size())) {
        n_rows = int64_t(lists_missing.size());
        this->n_columns = n_columns;
        this->indptr = indptr.data();
        this->indices = indices.data();
        this->lists_missing = lists_missing.data();
        this->dense = pointer_or_null(dense, n_rows * n_columns, "dense");
        require_size(values, n_listed, "values");
        if (values.dtype() == nb::dtype<float>())
            single_values = static_cast<const float*>(values.data());
        else if (values.dtype() == nb::dtype<double>())
            this->values = static_cast<const double*>(values.data());
        else
            throw nb::type_error("values must be floats");
        n_needed = check_lists(indptr, indices, "indptr", "indices");
        if (stored_indptr) {
            require(stored_indices && stored_values, "a sparse matrix needs stored_indices and stored_values");
            this->stored_indptr = stored_indptr->data();
            this->stored_indices = stored_indices->data();
            this->stored_values = pointer_or_null(stored_values, int64_t(stored_indices->size()), "stored_values");
            n_needed = std::max(n_needed, check_lists(*stored_indptr, *stored_indices, "stored_indptr", "stored_indices"));
        }
        require(!has_matrix() || n_needed <= n_columns, "positions must be less than n_columns");
        longest = has_matrix() ? n_columns : 0;
        for (int64_t row = 0; row < n_rows; ++row) {
            longest = std::max(longest, this->indptr[row + 1] - this->indptr[row]);
            require(has_matrix() || !this->lists_missing[row], "rows that list missing positions need a matrix");
        }
    }

    int64_t n_listed;  // over all rows
    int64_t n_needed;  // columns that the positions need

    // Check that factors have the rows and columns of the data.
    void check_factors(int64_t n_rows_W, int64_t n_rows_Z) const {
        require(n_rows_W == n_rows, "W must have as many rows as the data");
        require(n_needed <= n_rows_Z && (!has_matrix() || n_columns == n_rows_Z),
                "Z must have as many rows as the data have columns");
    }

private:
    // Check that pointers lead into the positions, row by row, and return how many columns the positions need.
    int64_t check_lists(const Pointers& pointers, const Positions& positions, const char* name, const char* of) const {
        require_size(pointers, n_rows + 1, name);
        const int64_t* p = pointers.data();
        bool is_ascending = p[0] >= 0 && p[n_rows] <= int64_t(positions.size());
        for (int64_t row = 0; row < n_rows; ++row) is_ascending &= p[row] <= p[row + 1];
        if (!is_ascending)
            throw std::invalid_argument(std::string(name) + " must ascend, from 0 at least to the number of " + of +
                                        " at most");
        int64_t n = 0;
        for (std::size_t i = 0; i < positions.size(); ++i) n = std::max(n, int64_t(positions.data()[i]) + 1);
        return n;
    }
};

// The coefficients of `Prior`, and the arrays that hold them, of shape (1 or rows, components).
class PriorArrays : public Prior {
public:
    PriorArrays(Matrix linear, Matrix quadratic, double pairwise, std::optional<Matrix> absolute, double max_rate,
                bool paper_rule)
        : Prior{strided(linear), strided(quadratic), absolute ? strided(*absolute) : Strided{}, pairwise, max_rate,
                paper_rule},
          linear_(linear), quadratic_(quadratic), absolute_(absolute) {}

    // Return the coefficients for a factor, after a check of their shapes.
    Prior of_factor(int64_t n_rows, int64_t n_components) const {
        check(linear_, n_rows, n_components, "linear");
        check(quadratic_, n_rows, n_components, "quadratic");
        if (absolute_) check(*absolute_, n_rows, n_components, "absolute");
        return *this;
    }

private:
    static Strided strided(const Matrix& matrix) {
        return {matrix.data(), matrix.shape(0) > 1 ? int64_t(matrix.shape(1)) : 0};
    }

    static void check(const Matrix& matrix, int64_t n_rows, int64_t n_components, const char* name) {
        require((matrix.shape(0) == 1 || int64_t(matrix.shape(0)) == n_rows) &&
                    int64_t(matrix.shape(1)) == n_components,
                " must have the shape (1 or rows, components) of the factor", name);
    }

    Matrix linear_, quadratic_;
    std::optional<Matrix> absolute_;
};

void bind_testing(nb::module_& module);

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
