// The functions and classes that Python sees. Every kernel is serial and releases the GIL: the caller runs them in threads
// over ranges of rows, and draws do not depend on the number of threads.

#include <nanobind/stl/vector.h>

#include "errors.hpp"
#include "gammas.hpp"
#include "interwoven.hpp"
#include "moves.hpp"
#include "outliers.hpp"
#include "sweep.hpp"

namespace bnmf {
namespace {

using nb::arg;

using NewArray = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

// Return an array of value(numbers...) of as many numbers.
template <typename F, typename... N> NewArray computed(F value, const Numbers& first, const N&... others) {
    const std::size_t n = first.size();
    (pointer(others, int64_t(n), "each argument"), ...);
    double* const out = new double[n];
    const nb::capsule owner(out, [](void* memory) noexcept { delete[] static_cast<double*>(memory); });
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < n; ++i) out[i] = value(first.data()[i], others.data()[i]...);
    }
    return NewArray(out, {n}, owner);
}

// Return an array of draw(stream, numbers...), entry i from the stream of row i.
template <typename F, typename... N> NewArray drawn(Pair key, F draw, const N&... numbers) {
    uint64_t row = 0;
    return computed([&](auto... x) {
        Stream stream = stream_of(key_of(key), row++);
        return draw(stream, x...);
    }, numbers...);
}

// Call a kernel that writes one number for each listed entry of the rows `start` to `stop`, or one for each row.
template <auto kernel, bool is_by_entry>
void with_residuals(Matrix W, Matrix Z, const Rows& rows, int64_t start, int64_t stop, Results out) {
    const DataArrays& data = rows.data;
    const Fit fit(W, Z, rows.entry_scale, rows.row_scale);
    data.check_factors(fit.n_rows, fit.n_columns);
    require(0 <= start && start <= stop && stop <= data.n_rows, "there are no such rows");
    double* const numbers = pointer(out, is_by_entry ? data.n_listed : data.n_rows, "out");
    nb::gil_scoped_release release;
    kernel(fit, data, start, stop, numbers);
}

// Write draws (S, n) of w z at paired rows and columns.
void products_of_pairs(Draws W, Draws Z, Pointers rows, Pointers columns, WritableMatrix out) {
    const int64_t n = int64_t(rows.size()), *row = rows.data(), *column = pointer(columns, n, "columns");
    require(W.shape(0) == Z.shape(0) && W.shape(2) == Z.shape(1), "W and Z must have the same draws and components");
    double* const products = pointer(out, int64_t(W.shape(0)) * n, "out");
    for (int64_t i = 0; i < n; ++i)
        require(0 <= row[i] && row[i] < int64_t(W.shape(1)) && 0 <= column[i] && column[i] < int64_t(Z.shape(2)),
                "there are no such rows or columns");
    const auto compute =
        is_single(W) ? (is_single(Z) ? paired_products<float, float> : paired_products<float, double>)
                     : (is_single(Z) ? paired_products<double, float> : paired_products<double, double>);
    nb::gil_scoped_release release;
    compute(W, Z, row, column, n, products);
}

// Draw both factors, one after the other.
void draw_both(const Rows& rows, const Rows& columns, WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W,
               const PriorArrays& prior_Z, Memory& memory, Numbers row_variance, Numbers column_variance, Pair key_W,
               Pair key_Z, int64_t n_passes, Range drawn_W, Range drawn_Z, bool columns_first, Results errors_of_rows,
               Results errors_of_columns) {
    const auto draw_W = [&] {
        HalfSweep(rows, W, Z, prior_W, memory, row_variance, column_variance, key_W, n_passes, drawn_W, errors_of_rows)
            .draw_all();
    };
    if (!columns_first) draw_W();
    HalfSweep(columns, Z, W, prior_Z, memory, column_variance, row_variance, key_Z, n_passes, drawn_Z, errors_of_columns)
        .draw_all();
    if (columns_first) draw_W();
}

// Call a move with both factors and memory for what it makes of them.
template <typename Part, auto move, typename... More>
void move_factors(WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z, Pair key,
                  Memory& memory, More... more) {
    const Factor of_W(W, prior_W), of_Z(Z, prior_Z);
    require(of_W.n_components == of_Z.n_components, "W and Z must have the same components");
    nb::gil_scoped_release release;
    double* const numbers = memory.take(Part::size(of_W) + Part::size(of_Z));
    move(Part(of_W, numbers), Part(of_Z, numbers + Part::size(of_W)), key_of(key), more...);
}

void bind_classes(nb::module_& m) {
    nb::class_<DataArrays>(m, "Data").def(nb::init<nb::kwargs>());
    nb::class_<PriorArrays>(m, "Prior").def(nb::init<Matrix, Matrix, double, double, bool, std::optional<Matrix>>());
    nb::class_<Memory>(m, "Memory").def(nb::init<>());
    nb::class_<Rows>(m, "Rows").def(nb::init<nb::kwargs>());
    nb::class_<HalfSweep>(m, "HalfSweep")  // of Z and the variances it has copies
        .def(nb::init<const Rows&, WritableMatrix, Matrix, const PriorArrays&, Memory&, Numbers, Numbers, Pair, int64_t,
                      Range, Results, std::optional<Numbers>, std::optional<Numbers>, std::optional<Ids>>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
             nb::keep_alive<1, 12>(), nb::keep_alive<1, 13>(), nb::keep_alive<1, 14>(), nb::keep_alive<1, 15>(),
             arg("rows"), arg("W"), arg("Z"), arg("prior"), arg("memory"), arg("row_variance"), arg("entry_variance"),
             arg("key"), arg("n_passes"), arg("drawn"), arg("squared_error"), arg("squares") = nb::none(),
             arg("roots") = nb::none(), arg("ids") = nb::none())
        .def("draw", &HalfSweep::draw);
    nb::class_<Given>(m, "Given").def(nb::init<nb::kwargs>());
    nb::class_<EntryList>(m, "EntryList");
    nb::class_<Latent, EntryList>(m, "Latent").def(nb::init<nb::kwargs>()).def("draw", &Latent::draw);
    nb::class_<Interwoven, EntryList>(m, "Interwoven").def(nb::init<nb::kwargs>()).def("draw", &Interwoven::draw);
    nb::class_<Outliers, EntryList>(m, "Outliers").def(nb::init<nb::kwargs>()).def("draw", &Outliers::draw);
}

void bind_functions(nb::module_& m) {
    m.def("draw_both", draw_both);
    m.def("rescale", move_factors<Rescaled, rescale>);
    m.def("shear", move_factors<Sheared, shear, int64_t, int64_t>);
    m.def("listed_residuals", with_residuals<listed_residuals, true>);
    m.def("squared_residuals", with_residuals<squared_residuals, false>);
    m.def("products_of_pairs", products_of_pairs);
    m.def("all_finite", [](Exact<nb::ndarray<const double, nb::c_contig, nb::device::cpu>> numbers) {
        return all_finite(numbers.data(), int64_t(numbers.size()));
    });
    m.def("all_above", [](Numbers numbers, Numbers bounds) {
        const int64_t n = int64_t(numbers.size());
        return all_above(numbers.data(), pointer(bounds, n, "bounds"), n);
    });
    m.def("draw_variances", draw_variances);
    m.def("draw_rate", draw_rate);
    m.def("key_of", [](uint64_t seed_high, uint64_t seed_low, uint64_t chain, uint64_t sweep, uint64_t part) {
        const Key key = key_of({seed_high, seed_low}, chain, sweep, part);
        return Pair{key.high, key.low};
    });
    m.def("draw_gamma", [](double shape, double rate, Pair key) {
        Stream stream = stream_of(key_of(key), 0);
        return gamma(shape, stream) / rate;
    });
    m.def("draw_exponential", [](Numbers rate, Pair key) {
        return drawn(key, [](Stream& stream, double rate) { return exponential(stream) / rate; }, rate);
    });
    m.def("draw_beta", [](Numbers a, Numbers b, Pair key) {
        const auto draw = [](Stream& stream, double a, double b) {
            const double x = gamma(a, stream), y = gamma(b, stream);
            return x / (x + y);
        };
        return drawn(key, draw, a, b);
    });
    m.def("draw_within", [](Numbers b, Numbers p, Numbers width, Pair key) {
        const auto draw = [](Stream& stream, double b, double p, double w) { return draw_within(b, p, w, stream); };
        return drawn(key, draw, b, p, width);
    });
    m.def("log_mass", [](Numbers b, Numbers p, Numbers width) { return computed(log_mass, b, p, width); });
}

}  // namespace

// Define everything in a module.
void bind(nb::module_& m) {
    m.attr("ROWS_PER_TILE") = ROWS_PER_TILE;
    bind_classes(m);
    bind_functions(m);
#ifdef BNMF_TESTING
    nb::module_ testing = m.def_submodule("testing", "Parts of the kernels, for the tests.");
    bind_testing(testing);
#endif
}

}  // namespace bnmf

#define BNMF_DEFINE(name) NB_MODULE(name, m) { bnmf::bind(m); }  // NB_MODULE does not expand its argument
BNMF_DEFINE(BNMF_MODULE)
