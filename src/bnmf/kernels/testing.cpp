// Parts of the kernels that only other kernels call, as functions of Python, for the tests.

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "latent.hpp"
#include "moves.hpp"
#include "residuals.hpp"
#include "sweep.hpp"
#include "systems.hpp"

namespace bnmf {
namespace {

using Words4 = std::array<uint64_t, 4>;
using Words1 = Array<const uint64_t, 1>;

Stream to_stream(const Words4& words) { return {words[0], words[1], words[2], words[3]}; }
Words4 to_words(const Stream& stream) { return {stream.s0, stream.s1, stream.s2, stream.s3}; }

// Return a number and the advanced stream.
template <typename F> std::pair<double, Words4> drawn(const Words4& words, F draw) {
    Stream stream = to_stream(words);
    const double x = draw(stream);
    return {x, to_words(stream)};
}

double draw_standard(const std::string& name, Stream& stream) {
    if (name == "uniform") return uniform(stream);
    if (name == "normal") return normal(stream);
    if (name == "exponential") return exponential(stream);
    require(name == "normal_tail", " is no distribution", name.c_str());
    return normal_tail(stream);
}

void bind_streams(nb::module_& m) {
    m.def("mix", mix);
    m.def("stream_of", [](uint64_t high, uint64_t low, uint64_t row) { return to_words(stream_of({high, low}, row)); });
    m.def("next_word", [](const Words4& words) {
        Stream stream = to_stream(words);
        const uint64_t word = next_word(stream);
        return std::make_pair(word, to_words(stream));
    });
    m.def("fill_standard", [](const std::string& name, uint64_t high, uint64_t low, uint64_t row, WritableMatrix out) {
        for (std::size_t i = 0; i < out.shape(0); ++i) {  // row i from the stream of row + i
            Stream stream = stream_of({high, low}, row + i);
            for (std::size_t j = 0; j < out.shape(1); ++j) out(i, j) = draw_standard(name, stream);
        }
    });
    m.def("tail_start", [] { return std::make_pair(NORMAL.x[1], EXPONENTIAL.x[1]); });
    m.def("scaled_erfc", scaled_erfc);
    m.def("draw_positive", [](double b, double p, const Words4& words) {
        return drawn(words, [=](Stream& stream) { return draw_positive(b, p, stream); });
    });
    m.def("draw_real", [](double b, double p, double rate, const Words4& words) {
        return drawn(words, [=](Stream& stream) { return draw_real(b, p, rate, stream); });
    });
    m.def("draw_two_piece", [](double b, double p, double kink, double max_rate, const Words4& words) {
        return drawn(words, [=](Stream& stream) { return draw_two_piece(b, p, kink, max_rate, stream); });
    });
}

// Draw eight rows at a time in the first `n_active` lanes, each from its words, and write the streams back. `kind` is the
// distribution: "positive", or with a kink at `kink` ("two_piece") or at 0 ("real") of the given rates, or up to `kink` ("within").
void fill_lanes(const std::string& kind, Numbers b, Numbers p, Numbers kink, Numbers rate, int64_t n_active,
                Array<uint64_t, 1> words, Results out) {
    for (const Numbers& array : {b, p, kink, rate}) require_size(array, int64_t(out.size()), "an argument");
    require_size(words, int64_t(4 * out.size()), "words");
    require(out.size() % WIDTH == 0, "out must have whole vectors");
    for (std::size_t i = 0; i < out.size(); i += WIDTH) {
        uint64_t* own = words.data() + 4 * i;
        Streams streams{load(own), load(own + WIDTH), load(own + 2 * WIDTH), load(own + 3 * WIDTH)};
        const Vector slope = load(b.data() + i), precision = load(p.data() + i), inverse = broadcast(1.0) / precision;
        const Vector scale = square_root(inverse);
        const Mask active = first_lanes(n_active);
        Vector x = broadcast(0.0);
        if (kind == "positive")
            x = draw_lanes(slope, precision, inverse, scale, active, streams);
        else if (kind == "two_piece")
            x = draw_two_piece_lanes(slope, precision, inverse, scale, load(kink.data() + i), rate.data()[i], active,
                                     streams);
        else if (kind == "within")  // 0 to `kink`
            x = draw_within_lanes(slope, precision, load(kink.data() + i), active, streams);
        else
            x = draw_real_lanes(slope, precision, inverse, scale, load(rate.data() + i), active, streams);
        store(out.data() + i, x);
        store(own, streams.s0);
        store(own + WIDTH, streams.s1);
        store(own + 2 * WIDTH, streams.s2);
        store(own + 3 * WIDTH, streams.s3);
    }
}

void bind_vectors(nb::module_& m) {
    m.def("fill_lanes", fill_lanes);
    m.def("tile", [] { return std::make_tuple(TILE.rows, TILE.columns, TILE.odd_columns); });
    m.def("first_lanes", [](int64_t n) { return mask_to_bits(first_lanes(n)); });
    m.def("exp_of_negative", [](Results x) {
        for (std::size_t i = 0; i + WIDTH <= x.size(); i += WIDTH)
            store(x.data() + i, exp_of_negative(load(x.data() + i)));
    });
    m.def("transpose", [](WritableMatrix x) {
        require_size(x, WIDTH * WIDTH, "x");
        Vector rows[WIDTH];
        for (int i = 0; i < WIDTH; ++i) rows[i] = load(x.data() + i * WIDTH);
        transpose(rows);
        for (int i = 0; i < WIDTH; ++i) store(x.data() + i * WIDTH, rows[i]);
    });
    m.def("row_sums", [](Matrix x, Results out) {
        require_size(x, WIDTH * WIDTH, "x");
        require_size(out, WIDTH, "out");
        store(out.data(), row_sums(x.data()));
    });
    m.def("apply", [](const std::string& name, Numbers x, Numbers y, Numbers z, Results out) {  // lane by lane
        for (const Numbers& array : {x, y, z}) require_size(array, WIDTH, "an argument");
        require_size(out, WIDTH, "out");
        const Vector a = load(x.data()), b = load(y.data()), c = load(z.data());
        Vector result = square_root(a);
        if (name == "larger") result = larger(a, b);
        if (name == "absolute") result = absolute(a);
        if (name == "add_product") result = add_product(a, b, c);
        if (name == "select_greater") result = select(a > b, b, c);
        if (name == "select_at_least") result = select(a >= b, b, c);
        store(out.data(), result);
    });
    m.def("to_floats", [](Words1 x, Results out) {
        require_size(x, WIDTH, "x");
        require_size(out, WIDTH, "out");
        store(out.data(), to_floats(load(x.data())));
    });
    m.def("gather_pairs", [](Matrix table, Words1 index, WritableMatrix out) {
        require(table.shape(1) == 2, "table must have two columns");
        require_size(index, WIDTH, "index");
        require_size(out, 2 * WIDTH, "out");
        for (int i = 0; i < WIDTH; ++i) require(index.data()[i] < table.shape(0), "no such row");
        Vector first, second;
        gather_pairs(table.data(), load(index.data()), first, second);
        store(out.data(), first);
        store(out.data() + WIDTH, second);
    });
}

void bind_sums(nb::module_& m) {
    m.attr("LINES_PER_CHUNK") = LINES_PER_CHUNK;
    m.attr("ROWS_PER_CHUNK") = ROWS_PER_CHUNK;
    m.attr("MAX_GATHERED") = MAX_GATHERED;
    m.attr("MIN_REMAINING_FRACTION") = MIN_REMAINING_FRACTION;
    m.def("max_listed", max_listed);
    m.def("residuals_size", residuals_size);
    m.def("add_outer_products", [](double factor, Matrix lines, int64_t n, WritableMatrix system) {
        const int64_t side = int64_t(lines.shape(1));
        require(side % WIDTH == 0 && 0 <= n && n <= int64_t(lines.shape(0)), "lines must be whole vectors");
        require_size(system, side * side, "system");
        add_outer_products(factor, lines.data(), n, system.data(), side);
    });
    m.def("add_tile", [](bool is_odd, Numbers x, int64_t line_x, int64_t step_x, Numbers y, int64_t line_y, int64_t n,
                         double factor, Results out, int64_t line_out) {
        const int64_t rows = TILE.rows, columns = is_odd ? TILE.odd_columns : TILE.columns;
        require(n >= 0 && (n == 0 || (n - 1) * line_x + (rows - 1) * step_x < int64_t(x.size())), "x is too short");
        require(n == 0 || (n - 1) * line_y + columns <= int64_t(y.size()), "y is too short");
        require((rows - 1) * line_out + columns <= int64_t(out.size()), "out is too short");
        const auto add = is_odd ? add_tile<TILE.rows, TILE.odd_columns> : add_tile<TILE.rows, TILE.columns>;
        add({x.data(), line_x, step_x}, y.data(), line_y, n, factor, out.data(), line_out);
    });
    m.def("product", [](const DataArrays& data, Matrix scaled, int64_t n_components, Numbers row_scale, int64_t start,
                        int64_t stop, Results product) {
        const int64_t side = int64_t(scaled.shape(1));
        require(data.has_matrix() && int64_t(scaled.shape(0)) > data.n_columns && side == padded_length(n_components),
                "scaled must be a padded factor of the data");
        require(0 <= start && start <= stop && stop <= data.n_rows, "there are no such rows");
        require(int64_t(product.size()) >= (stop - start) * side, "product is too short");
        const Strided scale = one_or_each(row_scale, data.n_rows, "row_scale");
        if (data.dense != nullptr)
            set_dense_product(data.dense, data.n_columns, scaled.data(), n_components, side, scale, start, stop,
                              product.data());
        else
            set_sparse_product(data.stored_indptr, data.stored_indices, data.stored_values, scaled.data(), side, scale,
                               start, stop, product.data());
    });
    m.def("set_factor", [](Matrix given, std::optional<Numbers> inverse_deviation, std::optional<Numbers> entry_scale,
                           Memory& memory, WritableMatrix Z, WritableMatrix scaled, WritableMatrix gram) {
        const int64_t n_rows = int64_t(given.shape(0));
        const Factor factor = memory.factor(n_rows, int64_t(given.shape(1)), entry_scale.has_value());
        const double* scale = pointer_or_null(entry_scale, n_rows, "entry_scale");
        factor.set(given.data(), pointer_or_null(inverse_deviation, n_rows, "inverse_deviation"), scale);
        require_size(Z, (n_rows + 1) * factor.side, "Z");
        require_size(scaled, (n_rows + 1) * factor.side, "scaled");
        require_size(gram, factor.side * factor.side, "gram");
        std::copy_n(factor.Z, Z.size(), Z.data());
        std::copy_n(factor.scaled, scaled.size(), scaled.data());
        std::copy_n(factor.gram, gram.size(), gram.data());
        return reinterpret_cast<std::uintptr_t>(factor.Z) % 64 == 0;
    }, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("set_system", [](int64_t row, const DataArrays& data, Matrix Z, int64_t n_components, WritableMatrix system) {
        const int64_t side = padded_length(n_components), n_columns = int64_t(Z.shape(0)) - 1;
        require(0 <= row && row < data.n_rows && data.n_needed <= n_columns, "there is no such row");
        require(int64_t(Z.shape(1)) == side, "Z must be padded");
        require_size(system, side * side, "system");
        std::vector<double> chunk(ROWS_PER_CHUNK * side, NOT_A_NUMBER), gram(side * side);
        add_outer_products(1.0, Z.data(), n_columns, gram.data(), side);
        Problem problem{};
        problem.data = data;
        problem.n_components = n_components;
        problem.side = side;
        problem.n_columns = n_columns;
        problem.Z = Z.data();
        problem.gram = gram.data();
        set_system(row, problem, chunk.data(), system.data());
    });
    m.def("shear_pair", [](WritableMatrix W, WritableMatrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z,
                           uint64_t key_high, uint64_t key_low) {  // with j = 0 and k = 1 only
        const int64_t n_components = int64_t(W.shape(1));
        require(n_components > 1 && int64_t(Z.shape(1)) == n_components, "W and Z must have the same components");
        const int64_t n_W = int64_t(W.shape(0)), n_Z = int64_t(Z.shape(0));
        const Component of_W{W.data(), n_W, n_components, prior_W.of_factor(n_W, n_components)};
        const Component of_Z{Z.data(), n_Z, n_components, prior_Z.of_factor(n_Z, n_components)};
        Memory memory;
        double* numbers = memory.take(Sheared::size(of_W) + Sheared::size(of_Z));
        const Sheared sheared_W(of_W, numbers), sheared_Z(of_Z, numbers + Sheared::size(of_W));
        shear_pair(0, 1, sheared_W, sheared_Z, stream_of({key_high, key_low}, 0));
        copy_from_columns(sheared_W.w, sheared_W.length, of_W);
        copy_from_columns(sheared_Z.w, sheared_Z.length, of_Z);
    });
}

}  // namespace

void bind_testing(nb::module_& m) {
    bind_streams(m);
    bind_vectors(m);
    bind_sums(m);
}

}  // namespace bnmf
