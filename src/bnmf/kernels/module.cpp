// The functions and classes that Python sees. Every kernel is serial and releases the GIL: the caller runs them in threads
// over ranges of rows, and draws do not depend on the number of threads.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "errors.hpp"
#include "latent.hpp"
#include "moves.hpp"
#include "sweep.hpp"

namespace bnmf {
namespace {

using Words1 = Array<const uint64_t, 1>;

// Fill `out` with value(i, stream), entry i from the stream of row i.
template <typename F> void fill(uint64_t key_high, uint64_t key_low, Results& out, F value) {
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < out.size(); ++i) {
        Stream stream = stream_of({key_high, key_low}, i);
        out.data()[i] = value(i, stream);
    }
}

Component component(const WritableMatrix& W, const PriorArrays& prior) {
    const int64_t n_rows = int64_t(W.shape(0)), n_components = int64_t(W.shape(1));
    return {W.data(), n_rows, n_components, prior.of_factor(n_rows, n_components)};
}

// Return both factors of a residual, after a check of everything that is read of them.
Fit fit_of(const Matrix& W, const Matrix& Z, const DataArrays& data, const std::optional<Numbers>& entry_scale,
           const Numbers& row_scale, int64_t start, int64_t stop) {
    static const double one = 1.0;
    const int64_t n_columns = int64_t(Z.shape(0)), n_components = int64_t(W.shape(1));
    require(int64_t(W.shape(0)) == data.n_rows, "W must have as many rows as the data");
    require(int64_t(Z.shape(1)) == n_components, "W and Z must have the same components");
    require(data.n_needed <= n_columns && (!data.has_matrix() || data.n_columns == n_columns),
            "Z must have as many rows as the data have columns");
    require(0 <= start && start <= stop && stop <= data.n_rows, "there are no such rows");
    const double* scale = pointer_or_null(entry_scale, n_columns, "entry_scale");
    return {W.data(), Z.data(), n_components, scale != nullptr ? Strided{scale, 1} : Strided{&one, 0},
            one_or_each(row_scale, data.n_rows, "row_scale")};
}

void bind_classes(nb::module_& m) {
    using Pointers = DataArrays::Pointers;
    using Positions = DataArrays::Positions;
    nb::class_<DataArrays>(m, "Data")
        .def(nb::init<Pointers, Positions, DataArrays::Values, Array<const uint8_t, 1>, std::optional<Matrix>,
                      std::optional<Pointers>, std::optional<Positions>, std::optional<Numbers>, int64_t>(),
             nb::kw_only(), nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("lists_missing").noconvert(), nb::arg("dense").noconvert().none(),
             nb::arg("stored_indptr").noconvert().none(), nb::arg("stored_indices").noconvert().none(),
             nb::arg("stored_values").noconvert().none(), nb::arg("n_columns"));
    nb::class_<PriorArrays>(m, "Prior")
        .def(nb::init<Matrix, Matrix, double, std::optional<Matrix>, double, bool>(), nb::kw_only(),
             nb::arg("linear").noconvert(), nb::arg("quadratic").noconvert(), nb::arg("pairwise"),
             nb::arg("absolute").noconvert().none(), nb::arg("max_rate"), nb::arg("paper_rule"));
    nb::class_<Memory>(m, "Memory").def(nb::init<>());
    nb::class_<Split>(m, "Split")
        .def(nb::init<const DataArrays&, std::optional<Pointers>, std::optional<Pointers>,
                      std::optional<Array<const uint8_t, 1>>, std::optional<Pointers>, std::optional<Pointers>>(),
             nb::keep_alive<1, 2>(), nb::kw_only(), nb::arg("data"), nb::arg("sharing_indptr").noconvert().none(),
             nb::arg("sharing_rows").noconvert().none(), nb::arg("repeats").noconvert().none(),
             nb::arg("other_indptr").noconvert().none(), nb::arg("other_rows").noconvert().none());
    nb::class_<Rows>(m, "Rows")
        .def(nb::init<const DataArrays&, const Split&, std::optional<Numbers>, Numbers, Numbers, Ids>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::kw_only(), nb::arg("data"), nb::arg("split"),
             nb::arg("entry_scale").noconvert().none(), nb::arg("row_scale").noconvert(), nb::arg("squares").noconvert(),
             nb::arg("ids").noconvert());
    nb::class_<HalfSweep>(m, "HalfSweep")
        .def(nb::init<const Rows&, WritableMatrix, Matrix, const PriorArrays&, Memory&, Numbers, Numbers, uint64_t,
                      uint64_t, int64_t, int64_t, int64_t, Results, std::optional<Numbers>, std::optional<Numbers>,
                      std::optional<Ids>>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::arg("rows"),
             nb::arg("W").noconvert(), nb::arg("Z").noconvert(), nb::arg("prior"), nb::arg("memory"),
             nb::arg("row_variance").noconvert(), nb::arg("entry_variance").noconvert(), nb::arg("key_high"),
             nb::arg("key_low"), nb::arg("n_passes"), nb::arg("first_drawn"), nb::arg("end_drawn"),
             nb::arg("squared_error").noconvert(), nb::arg("squares").noconvert() = nb::none(),
             nb::arg("roots").noconvert() = nb::none(), nb::arg("ids").noconvert() = nb::none())
        .def("draw", &HalfSweep::draw, nb::arg("first"), nb::arg("end"), nb::arg("memory"));
    nb::class_<Latent>(m, "Latent")
        .def(nb::init<Pointers, Positions, Numbers, Numbers, std::vector<Latent::Target>>(), nb::kw_only(),
             nb::arg("indptr").noconvert(), nb::arg("columns").noconvert(), nb::arg("lower").noconvert(),
             nb::arg("upper").noconvert(), nb::arg("targets").noconvert())
        .def("draw", &Latent::draw, nb::kw_only(), nb::arg("W").noconvert(), nb::arg("Z").noconvert(),
             nb::arg("entry_scale").noconvert().none(), nb::arg("row_scale").noconvert(),
             nb::arg("row_variance").noconvert(), nb::arg("column_variance").noconvert(),
             nb::arg("weight").noconvert().none(), nb::arg("ids").noconvert(), nb::arg("key_high"), nb::arg("key_low"),
             nb::arg("start"), nb::arg("stop"));
}

void bind_sweep(nb::module_& m) {
    m.def("draw_both",
          [](const Rows& rows, const Rows& columns, WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W,
             const PriorArrays& prior_Z, Memory& memory, Numbers row_variance, Numbers column_variance,
             std::pair<uint64_t, uint64_t> key_W, std::pair<uint64_t, uint64_t> key_Z, int64_t n_passes,
             std::pair<int64_t, int64_t> drawn_W, std::pair<int64_t, int64_t> drawn_Z, bool columns_first,
             Results errors_of_rows, Results errors_of_columns) {
              const auto draw_W = [&] {
                  HalfSweep(rows, W, Z, prior_W, memory, row_variance, column_variance, key_W.first, key_W.second,
                            n_passes, drawn_W.first, drawn_W.second, errors_of_rows)
                      .draw_all();
              };
              if (!columns_first) draw_W();
              HalfSweep(columns, Z, W, prior_Z, memory, column_variance, row_variance, key_Z.first, key_Z.second,
                        n_passes, drawn_Z.first, drawn_Z.second, errors_of_columns)
                  .draw_all();
              if (columns_first) draw_W();
          },
          nb::arg("rows"), nb::arg("columns"), nb::arg("W").noconvert(), nb::arg("Z").noconvert(), nb::arg("prior_W"),
          nb::arg("prior_Z"), nb::arg("memory"), nb::arg("row_variance").noconvert(),
          nb::arg("column_variance").noconvert(), nb::arg("key_W"), nb::arg("key_Z"), nb::arg("n_passes"),
          nb::arg("drawn_W"), nb::arg("drawn_Z"), nb::arg("columns_first"), nb::arg("errors_of_rows").noconvert(),
          nb::arg("errors_of_columns").noconvert());
}

void bind_moves(nb::module_& m) {
    m.def("rescale",
          [](WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z,
             uint64_t key_high, uint64_t key_low, Memory& memory) {
              const Component of_W = component(W, prior_W), of_Z = component(Z, prior_Z);
              require(of_W.n_components == of_Z.n_components, "W and Z must have the same components");
              const bool has_max_term = of_W.prior.max_rate != 0.0 || of_Z.prior.max_rate != 0.0;
              nb::gil_scoped_release release;
              rescale(of_W, of_Z, {key_high, key_low},
                      memory.take(has_max_term ? Rescaled::size(of_W.n_rows, of_W.n_components) +
                                                     Rescaled::size(of_Z.n_rows, of_Z.n_components)
                                               : 0));
          },
          nb::arg("W").noconvert(), nb::arg("Z").noconvert(), nb::arg("prior_W"), nb::arg("prior_Z"),
          nb::arg("key_high"), nb::arg("key_low"), nb::arg("memory"));
    m.def("shear",
          [](WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z,
             uint64_t key_high, uint64_t key_low, int64_t first, int64_t end, Memory& memory) {
              const Component of_W = component(W, prior_W), of_Z = component(Z, prior_Z);
              require(of_W.n_components == of_Z.n_components, "W and Z must have the same components");
              require(of_W.n_components > 1 && 0 <= first, "a shear needs two components and a distance");
              nb::gil_scoped_release release;
              shear(of_W, of_Z, {key_high, key_low}, first, end, memory.take(Sheared::size(of_W) + Sheared::size(of_Z)));
          },
          nb::arg("W").noconvert(), nb::arg("Z").noconvert(), nb::arg("prior_W"), nb::arg("prior_Z"),
          nb::arg("key_high"), nb::arg("key_low"), nb::arg("first"), nb::arg("end"), nb::arg("memory"));
}

void bind_errors(nb::module_& m) {
    const auto bind = [&](const char* name, auto kernel, auto n_results) {
        m.def(name,
              [=](Matrix W, Matrix Z, const DataArrays& data, std::optional<Numbers> entry_scale, Numbers row_scale,
                  int64_t start, int64_t stop, Results out) {
                  const Fit fit = fit_of(W, Z, data, entry_scale, row_scale, start, stop);
                  require_size(out, n_results(data), "out");
                  nb::gil_scoped_release release;
                  kernel(fit, data, start, stop, out.data());
              },
              nb::arg("W").noconvert(), nb::arg("Z").noconvert(), nb::arg("data"),
              nb::arg("entry_scale").noconvert().none(), nb::arg("row_scale").noconvert(), nb::arg("start"),
              nb::arg("stop"), nb::arg("out").noconvert());
    };
    bind("listed_residuals", listed_residuals, [](const DataArrays& data) { return data.n_listed; });
    bind("squared_residuals", squared_residuals, [](const DataArrays& data) { return data.n_rows; });
    m.def("all_finite", [](nb::ndarray<const double, nb::c_contig, nb::device::cpu> numbers) {
        nb::gil_scoped_release release;
        return all_finite(numbers.data(), int64_t(numbers.size()));
    }, nb::arg("numbers").noconvert());
    m.def("all_above", [](Numbers numbers, Numbers bounds) {
        require_size(bounds, int64_t(numbers.size()), "bounds");
        return all_above(numbers.data(), bounds.data(), int64_t(numbers.size()));
    }, nb::arg("numbers").noconvert(), nb::arg("bounds").noconvert());
}

void bind_draws(nb::module_& m) {
    m.def("key_of", [](uint64_t seed_high, uint64_t seed_low, uint64_t chain, uint64_t sweep, uint64_t part) {
        const Key key = key_of({seed_high, seed_low}, chain, sweep, part);
        return std::make_pair(key.high, key.low);
    });
    m.def("fill_exponential", [](Numbers rate, uint64_t key_high, uint64_t key_low, Results out) {
        require_size(rate, int64_t(out.size()), "rate");
        fill(key_high, key_low, out, [&](auto i, Stream& stream) { return exponential(stream) / rate.data()[i]; });
    }, nb::arg("rate").noconvert(), nb::arg("key_high"), nb::arg("key_low"), nb::arg("out").noconvert());
    m.def("fill_within",
          [](Numbers b, Numbers p, Numbers width, uint64_t key_high, uint64_t key_low, Results out) {
              require_size(b, int64_t(out.size()), "b");
              require_size(p, int64_t(out.size()), "p");
              require_size(width, int64_t(out.size()), "width");
              fill(key_high, key_low, out, [&](auto i, Stream& stream) {
                  return draw_within(b.data()[i], p.data()[i], width.data()[i], stream);
              });
          },
          nb::arg("b").noconvert(), nb::arg("p").noconvert(), nb::arg("width").noconvert(), nb::arg("key_high"),
          nb::arg("key_low"), nb::arg("out").noconvert());
    m.def("fill_log_mass", [](Numbers b, Numbers p, Numbers width, Results out) {
        require_size(b, int64_t(out.size()), "b");
        require_size(p, int64_t(out.size()), "p");
        require_size(width, int64_t(out.size()), "width");
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < out.size(); ++i)
            out.data()[i] = log_mass(b.data()[i], p.data()[i], width.data()[i]);
    }, nb::arg("b").noconvert(), nb::arg("p").noconvert(), nb::arg("width").noconvert(), nb::arg("out").noconvert());
}

}  // namespace

// Define everything in a module.
void bind(nb::module_& m) {
    m.attr("ROWS_PER_TILE") = ROWS_PER_TILE;
    bind_classes(m);
    bind_sweep(m);
    bind_moves(m);
    bind_errors(m);
    bind_draws(m);
    nb::module_ testing = m.def_submodule("testing", "Parts of the kernels, for the tests.");
    bind_testing(testing);
}

}  // namespace bnmf

#define BNMF_DEFINE(name) NB_MODULE(name, m) { bnmf::bind(m); }  // NB_MODULE does not expand its argument
BNMF_DEFINE(BNMF_MODULE)
