// Parts of the kernels that only other kernels call, as functions of Python, for the tests.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "residuals.hpp"

namespace bnmf {
namespace {

using StreamArray = Array<uint64_t, 2>;  // the four words of a stream in each row

Stream* streams_in(StreamArray& array) { return reinterpret_cast<Stream*>(array.data()); }

double draw(const std::string& name, Stream& stream) {
    if (name == "uniform") return uniform(stream);
    if (name == "normal") return normal(stream);
    if (name == "exponential") return exponential(stream);
    return normal_tail(stream);
}

// Draw a number from each stream. `kind` is the distribution: "positive", or with a kink at `kink` ("two_piece") or at 0
// ("real") of the given rates, or up to `kink` ("within").
void fill_scalar(const std::string& kind, Numbers b, Numbers p, Numbers kink, Numbers rate, StreamArray streams,
                 Results out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double slope = b.data()[i], precision = p.data()[i], at = kink.data()[i], of_kink = rate.data()[i];
        Stream& stream = streams_in(streams)[i];
        out.data()[i] = kind == "positive"    ? draw_positive(slope, precision, stream)
                        : kind == "two_piece" ? draw_two_piece(slope, precision, at, of_kink, stream)
                        : kind == "within"    ? draw_within(slope, precision, at, stream)
                                              : draw_real(slope, precision, of_kink, stream);
    }
}

// The same eight at a time, in the first `n_active` lanes, for whole vectors of numbers.
void fill_lanes(const std::string& kind, Numbers b, Numbers p, Numbers kink, Numbers rate, int64_t n_active,
                StreamArray streams, Results out) {
    for (std::size_t i = 0; i < out.size(); i += WIDTH) {
        StreamWords words;
        for (int lane = 0; lane < WIDTH; ++lane) words.set(lane, streams_in(streams)[i + lane]);
        Streams own = words.streams();
        const Vector slope = load(b.data() + i), precision = load(p.data() + i), inverse = broadcast(1.0) / precision;
        const Vector scale = square_root(inverse), at = load(kink.data() + i), rates = load(rate.data() + i);
        const Mask active = first_lanes(n_active);
        store(out.data() + i,
              kind == "positive" ? draw_lanes(slope, precision, inverse, scale, active, own)
              : kind == "two_piece"
                  ? draw_two_piece_lanes(slope, precision, inverse, scale, at, rate.data()[i], active, own)
              : kind == "within" ? draw_within_lanes(slope, precision, at, active, own)
                                 : draw_real_lanes(slope, precision, inverse, scale, rates, active, own));
        for (int lane = 0; lane < WIDTH; ++lane) streams_in(streams)[i + lane] = own.extract(lane);
    }
}

}  // namespace

void bind_testing(nb::module_& m) {
    m.attr("MAX_GATHERED") = MAX_GATHERED;
    m.attr("TILE") = std::make_tuple(TILE.rows, TILE.columns, TILE.odd_columns);
    m.attr("TAIL_STARTS") = std::make_pair(NORMAL.x[1], EXPONENTIAL.x[1]);
    m.def("mix", mix);
    m.def("next_word", [](StreamArray stream) { return next_word(*streams_in(stream)); });
    m.def("fill_streams", [](uint64_t high, uint64_t low, StreamArray out) {  // those of rows 0, 1, ...
        for (std::size_t i = 0; i < out.shape(0); ++i) streams_in(out)[i] = stream_of({high, low}, i);
    });
    m.def("fill_standard", [](const std::string& name, uint64_t high, uint64_t low, WritableMatrix out) {
        for (std::size_t i = 0; i < out.shape(0); ++i) {  // row i from the stream of row i
            Stream stream = stream_of({high, low}, i);
            for (std::size_t j = 0; j < out.shape(1); ++j) out(i, j) = draw(name, stream);
        }
    });
    m.def("exp_of_negative", [](Results x) {
        for (std::size_t i = 0; i + WIDTH <= x.size(); i += WIDTH)
            store(x.data() + i, exp_of_negative(load(x.data() + i)));
    });
    m.def("fill_scalar", fill_scalar);
    m.def("fill_lanes", fill_lanes);
    m.def("residuals_size", residuals_size);
    m.def("max_listed", max_listed);
    m.def("spoil", [](Memory& memory, int64_t size) {  // leave NaN as earlier work may, and return whether it is aligned
        for (double* numbers : {memory.take(size), memory.tile.reserve(size)}) {
            std::fill_n(numbers, size, NOT_A_NUMBER);
            if (reinterpret_cast<std::uintptr_t>(numbers) % 64 != 0) return false;
        }
        return true;
    });
}

}  // namespace bnmf
