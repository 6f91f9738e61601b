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

// Fill `out` with value(numbers...) of as many numbers as there are elements.
template <typename F, typename... N> void fill(Results& out, F value, const N&... numbers) {
    (require_size(numbers, int64_t(out.size()), "each argument"), ...);
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = value(numbers.data()[i]...);
}

// Fill `out` with draw(stream, numbers...), entry i from the stream of row i.
template <typename F, typename... N> void fill_random(Key key, Results& out, F draw, const N&... numbers) {
    uint64_t row = 0;
    fill(out, [&](auto... x) {
        Stream stream = stream_of(key, row++);
        return draw(stream, x...);
    }, numbers...);
}

Pair key_words(uint64_t seed_high, uint64_t seed_low, uint64_t chain, uint64_t sweep, uint64_t part) {
    const Key key = key_of({seed_high, seed_low}, chain, sweep, part);
    return {key.high, key.low};
}

// Draw variances, and return the scale and the strength that their precisions share.
std::pair<double, double> draw_variances(Numbers errors, Pointers counts, Numbers bounds, double strength, double scale,
                                         bool has_scale, Numbers strengths, uint64_t key_high, uint64_t key_low,
                                         Results out) {
    const int64_t n = int64_t(out.size());
    require_size(errors, n, "errors");
    require_size(counts, n, "counts");
    require(strengths.size() > 0, "there must be a strength");
    const Strided bound = one_or_each(bounds, n, "bounds");
    SharedPrecisions shared{strength, scale};
    Stream stream = stream_of({key_high, key_low}, 0);
    {
        nb::gil_scoped_release release;
        for (int64_t i = 0; i < n; ++i)
            out.data()[i] = shared.draw_variance(errors.data()[i], double(counts.data()[i]), bound[i], stream);
    }
    if (has_scale) shared.draw_scale(stream);
    shared.draw_strength(strengths.data(), int64_t(strengths.size()), stream);
    return {shared.scale, shared.strength};
}

// Draw a rate that has a prior Gamma(shape, rate): of both factors, or of each of their components.
void draw_rate(Matrix W, Matrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z, Range drawn_W, Range drawn_Z,
               bool by_component, double degree, double shape, double rate, uint64_t key_high, uint64_t key_low,
               Results out) {
    const int64_t n_components = int64_t(W.shape(1));
    require_size(out, by_component ? n_components : 1, "out");
    std::vector<double> shapes(out.size(), shape), rates(out.size(), rate);
    const auto add = [&](const Matrix& factor, const PriorArrays& prior, Range drawn) {
        const int64_t n_rows = int64_t(factor.shape(0)), first = drawn.first, end = drawn.second;
        require(int64_t(factor.shape(1)) == n_components && 0 <= first && end <= n_components, "there are no such components");
        const Prior coefficients = prior.of_factor(n_rows, n_components);
        for (int64_t k = first; k < end; ++k) shapes[by_component ? k : 0] += double(n_rows) / degree;
        add_penalty(factor.data(), n_rows, n_components, coefficients, first, end, by_component, rates.data());
    };
    nb::gil_scoped_release release;
    add(W, prior_W, drawn_W);
    add(Z, prior_Z, drawn_Z);
    Stream stream = stream_of({key_high, key_low}, 0);
    for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = gamma(shapes[i], stream) / rates[i];
}

// Call a kernel that writes one number for each listed entry of the rows `start` to `stop`, or one for each row.
template <auto kernel, bool is_by_entry>
void with_residuals(Matrix W, Matrix Z, const DataArrays& data, std::optional<Numbers> entry_scale, Numbers row_scale,
                    int64_t start, int64_t stop, Results out) {
    const int64_t n_columns = int64_t(Z.shape(0));
    require(Z.shape(1) == W.shape(1), "W and Z must have the same components");
    data.check_factors(int64_t(W.shape(0)), n_columns);
    require(0 <= start && start <= stop && stop <= data.n_rows, "there are no such rows");
    require_size(out, is_by_entry ? data.n_listed : data.n_rows, "out");
    const Fit fit{W.data(), Z.data(), int64_t(W.shape(1)), scales_of(entry_scale, n_columns),
                  one_or_each(row_scale, data.n_rows, "row_scale")};
    nb::gil_scoped_release release;
    kernel(fit, data, start, stop, out.data());
}

using Draws = Exact<nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>>;

// Call use(draws) with numbers of single or double precision.
template <typename F> void with_precision(const Draws& draws, F use) {
    const auto of = [&](auto number) {
        using T = decltype(number);
        return FactorDraws<T>{static_cast<const T*>(draws.data()), {draws.stride(0), draws.stride(1), draws.stride(2)}};
    };
    if (draws.dtype() == nb::dtype<float>())
        use(of(float()));
    else if (draws.dtype() == nb::dtype<double>())
        use(of(double()));
    else
        throw nb::type_error("draws must be floats");
}

// Check the positions of pairs before their products are computed.
void products_of_pairs(Draws W, Draws Z, Pointers rows, Pointers columns, WritableMatrix out) {
    const int64_t n_draws = int64_t(W.shape(0)), n_components = int64_t(W.shape(2)), n = int64_t(rows.size());
    require(W.shape(0) == Z.shape(0) && W.shape(2) == Z.shape(1), "W and Z must have the same draws and components");
    require_size(columns, n, "columns");
    require_size(out, n_draws * n, "out");
    const auto are_within = [n](const Pointers& positions, std::size_t length) {
        return std::all_of(positions.data(), positions.data() + n,
                           [length](int64_t i) { return 0 <= i && i < int64_t(length); });
    };
    require(are_within(rows, W.shape(1)) && are_within(columns, Z.shape(2)), "there are no such rows or columns");
    nb::gil_scoped_release release;
    with_precision(W, [&](auto of_W) {
        with_precision(Z, [&](auto of_Z) {
            paired_products(of_W, of_Z, rows.data(), columns.data(), n_draws, n_components, n, out.data());
        });
    });
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

void bind_classes(nb::module_& m) {
    nb::class_<DataArrays>(m, "Data")
        .def(nb::init<Pointers, Positions, DataArrays::Values, Flags, std::optional<Matrix>, std::optional<Pointers>,
                      std::optional<Positions>, std::optional<Numbers>, int64_t>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(),
             nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(),
             nb::kw_only(), arg("indptr"), arg("indices"), arg("values"), arg("lists_missing"), arg("dense").none(),
             arg("stored_indptr").none(), arg("stored_indices").none(), arg("stored_values").none(), arg("n_columns"));
    nb::class_<PriorArrays>(m, "Prior")
        .def(nb::init<Matrix, Matrix, double, std::optional<Matrix>, double, bool>(), nb::kw_only(), arg("linear"),
             arg("quadratic"), arg("pairwise"), arg("absolute").none(), arg("max_rate"), arg("paper_rule"));
    nb::class_<Memory>(m, "Memory").def(nb::init<>());
    nb::class_<Rows>(m, "Rows")
        .def(nb::init<const DataArrays&, Pointers, Pointers, Pointers, Flags, std::optional<Numbers>, Numbers, Numbers,
                      Ids>(),
             nb::keep_alive<1, 2>(), nb::kw_only(), arg("data"), arg("indptr"), arg("rows"), arg("n_sharing"),
             arg("repeats"), arg("entry_scale").none(), arg("row_scale"), arg("squares"), arg("ids"));
    nb::class_<HalfSweep>(m, "HalfSweep")  // of Z and the variances it has copies
        .def(nb::init<const Rows&, WritableMatrix, Matrix, const PriorArrays&, Memory&, Numbers, Numbers, Pair, int64_t,
                      Range, Results, std::optional<Numbers>, std::optional<Numbers>, std::optional<Ids>>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
             nb::keep_alive<1, 12>(), nb::keep_alive<1, 13>(), nb::keep_alive<1, 14>(), nb::keep_alive<1, 15>(),
             arg("rows"), arg("W"), arg("Z"), arg("prior"), arg("memory"), arg("row_variance"), arg("entry_variance"),
             arg("key"), arg("n_passes"), arg("drawn"), arg("squared_error"), arg("squares") = nb::none(),
             arg("roots") = nb::none(), arg("ids") = nb::none())
        .def("draw", &HalfSweep::draw);
    nb::class_<Given>(m, "Given")
        .def(nb::init<Matrix, Matrix, std::optional<Numbers>, Numbers, Numbers, Numbers, Ids, uint64_t, uint64_t>(),
             arg("W"), arg("Z"), arg("entry_scale").none(), arg("row_scale"), arg("row_variance"), arg("column_variance"),
             arg("ids"), arg("key_high"), arg("key_low"));
    nb::class_<Latent>(m, "Latent")
        .def(nb::init<Pointers, Positions, Numbers, Numbers, std::optional<Results>, std::optional<Results>,
                      std::vector<Target>>(),
             nb::kw_only(), arg("indptr"), arg("columns"), arg("lower"), arg("upper"), arg("sums") = nb::none(),
             arg("errors") = nb::none(), arg("targets"))
        .def("draw", &Latent::draw, arg("given"), arg("weight") = nb::none(), arg("log_odds") = nb::none(),
             arg("factor") = 0.0, arg("start"), arg("stop"));
    nb::class_<Interwoven>(m, "Interwoven")
        .def(nb::init<Pointers, Positions, Numbers, Flags, std::optional<Numbers>, std::optional<Pointers>,
                      std::vector<Target>>(),
             nb::kw_only(), arg("indptr"), arg("columns"), arg("limit"), arg("above"), arg("errors").none(),
             arg("places").none(), arg("targets"))
        .def("draw", &Interwoven::draw, arg("given"), arg("W"), arg("prior"), arg("drawn"), arg("weight").none(),
             arg("start"), arg("stop"));
    nb::class_<Outliers>(m, "Outliers")
        .def(nb::init<Pointers, Positions, Numbers, Results, std::vector<Target>, std::optional<WritableMatrix>,
                      std::optional<WritableMatrix>>(),
             nb::kw_only(), arg("indptr"), arg("columns"), arg("values"), arg("sums"), arg("targets"),
             arg("matrix").none(), arg("transposed").none())
        .def("draw", &Outliers::draw, arg("given"), arg("log_odds"), arg("factor"), arg("start"), arg("stop"));
}

void bind_functions(nb::module_& m) {
    m.def("draw_both", draw_both);
    m.def("rescale", [](WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z,
                        uint64_t key_high, uint64_t key_low, Memory& memory) {
        const Component of_W(W, prior_W), of_Z(Z, prior_Z);
        require(of_W.n_components == of_Z.n_components, "W and Z must have the same components");
        nb::gil_scoped_release release;
        rescale(of_W, of_Z, {key_high, key_low}, memory.take(Rescaled::size(of_W) + Rescaled::size(of_Z)));
    });
    m.def("shear", [](WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z,
                      uint64_t key_high, uint64_t key_low, int64_t first, int64_t end, Memory& memory) {
        const Component of_W(W, prior_W), of_Z(Z, prior_Z);
        require(of_W.n_components == of_Z.n_components, "W and Z must have the same components");
        require(of_W.n_components > 1 && 0 <= first, "a shear needs two components and a distance");
        nb::gil_scoped_release release;
        shear(of_W, of_Z, {key_high, key_low}, first, end, memory.take(Sheared::size(of_W) + Sheared::size(of_Z)));
    });
    m.def("listed_residuals", with_residuals<listed_residuals, true>);
    m.def("squared_residuals", with_residuals<squared_residuals, false>);
    m.def("products_of_pairs", products_of_pairs);
    m.def("all_finite", [](Exact<nb::ndarray<const double, nb::c_contig, nb::device::cpu>> numbers) {
        nb::gil_scoped_release release;
        return all_finite(numbers.data(), int64_t(numbers.size()));
    });
    m.def("all_above", [](Numbers numbers, Numbers bounds) {
        require_size(bounds, int64_t(numbers.size()), "bounds");
        return all_above(numbers.data(), bounds.data(), int64_t(numbers.size()));
    });
    m.def("draw_variances", draw_variances);
    m.def("draw_rate", draw_rate);
    m.def("key_of", key_words);
    m.def("fill_exponential", [](Numbers rate, uint64_t high, uint64_t low, Results out) {
        fill_random({high, low}, out, [](Stream& stream, double rate) { return exponential(stream) / rate; }, rate);
    });
    m.def("draw_gamma", [](double shape, double rate, uint64_t high, uint64_t low) {
        Stream stream = stream_of({high, low}, 0);
        return gamma(shape, stream) / rate;
    });
    m.def("fill_beta", [](Numbers a, Numbers b, uint64_t high, uint64_t low, Results out) {
        const auto draw = [](Stream& stream, double a, double b) {
            const double x = gamma(a, stream), y = gamma(b, stream);
            return x / (x + y);
        };
        fill_random({high, low}, out, draw, a, b);
    });
    m.def("fill_within", [](Numbers b, Numbers p, Numbers width, uint64_t high, uint64_t low, Results out) {
        const auto draw = [](Stream& stream, double b, double p, double w) { return draw_within(b, p, w, stream); };
        fill_random({high, low}, out, draw, b, p, width);
    });
    m.def("fill_log_mass", [](Numbers b, Numbers p, Numbers width, Results out) { fill(out, log_mass, b, p, width); });
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
