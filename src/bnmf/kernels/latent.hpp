// Latent values of entries that are only known to lie between two limits: draws from their truncated normals, or from
// mixtures of two where there may be gross errors.
#pragma once

#include <nanobind/stl/vector.h>

#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "lanes.hpp"

namespace bnmf {

// What latent values are drawn given: a fit, variances in units of the model, and streams; and as arguments what each kind
// of entries takes in addition.
struct Given : Fit {
    explicit Given(Arguments given) : Given(given, given.get<Matrix>("W"), given.get<Matrix>("Z")) {}

    Given(const Arguments& given, const Matrix& W, const Matrix& Z)
        : Fit(W, Z, given.scales_of_columns(Z.shape(0)), given.one_or_each("row_scale", W.shape(0))), arguments(given),
          row_variance(given.one_or_each("row_variance", n_rows)),
          column_variance(given.one_or_each("column_variance", n_columns)), ids(given.pointer<Ids>("ids", n_rows)),
          key(key_of(given.get<Pair>("key"))), column_precision(n_columns) {
        for (int64_t column = 0; column < n_columns; ++column) column_precision[column] = 1.0 / column_variance[column];
    }

    Arguments arguments;
    Strided row_variance, column_variance;
    const uint64_t* ids;
    Key key;
    std::vector<double> column_precision;
};

// Numbers, and the place of each of some entries there: -1 for none.
using Target = std::pair<Results, Pointers>;

// Some entries of a matrix, row by row, and every place where their values are stored.
struct EntryList {
    explicit EntryList(Arguments given)
        : arguments(std::move(given)), targets(arguments.get<std::vector<Target>>("targets")) {
        const auto pointers = arguments.get<Pointers>("indptr");
        const auto positions = arguments.get<Positions>("columns");
        n_rows = int64_t(pointers.size()) - 1;
        n = int64_t(positions.size());
        n_columns = arguments.get<int64_t>("n_columns");
        indptr = pointers.data();
        columns = positions.data();
        sums = arguments.pointer_or_null<Results>("sums", (n_rows + ROWS_PER_TILE - 1) / ROWS_PER_TILE * 2 * n_columns);
        require(n_rows >= 0 && indptr[0] == 0 && indptr[n_rows] == n, "indptr must end with the number of entries");
        require(std::all_of(columns, columns + n, [&](uint32_t column) { return column < n_columns; }),
                "columns must be less than n_columns");
        for (const auto& [numbers, places] : targets) {
            const int64_t *first = pointer(places, n, "the places of a target"), size = int64_t(numbers.size());
            require(std::all_of(first, first + n, [&](int64_t place) { return -1 <= place && place < size; }),
                    "places must be inside of their target");
        }
    }

    void check(const Given& given, int64_t start, int64_t stop) const {
        require(given.n_rows == n_rows && given.n_columns == n_columns, "W and Z must be factors of the data");
        require(0 <= start && start <= stop && stop <= n_rows, "there are no such rows");
    }

    bool is_in_targets(int64_t entry) const {
        return std::any_of(targets.begin(), targets.end(), [&](auto& target) { return target.second.data()[entry] >= 0; });
    }

    // Return the value of an entry that is in a target.
    double value(int64_t entry) const {
        for (const auto& [numbers, places] : targets)
            if (places.data()[entry] >= 0) return numbers.data()[places.data()[entry]];
        return NOT_A_NUMBER;
    }

    // Store the value of an entry in all places.
    void store(int64_t entry, double value) const {
        for (const auto& [numbers, places] : targets)
            if (places.data()[entry] >= 0) numbers.data()[places.data()[entry]] = value;
    }

    double* sums_of_tile(int64_t row) const { return sums + row / ROWS_PER_TILE * 2 * n_columns; }

    void count_gross_error(int64_t row, int64_t column, double error) const {
        sums_of_tile(row)[column] += 1.0;
        sums_of_tile(row)[n_columns + column] += error * error;
    }

    Arguments arguments;
    std::vector<Target> targets;
    int64_t n_rows, n, n_columns;
    const int64_t* indptr;
    const uint32_t* columns;
    double* sums;  // for each tile of rows, over each column: the number of gross errors, and then their squares
};

// Return a bit for each entry that has a gross error, given that it lies within [0, width], where it has a mean and a
// precision p without one: its odds are `log_odds` and the ratio of both masses.
//
// That ratio is at most the one of the densities at the end that is further from the mean, and at most exp(2 + a + a²/2) if
// the nearer end is a deviations away. So most entries are known to have no gross error before masses are computed.
[[gnu::noinline]] inline unsigned draw_gross(Vector mean, Vector p, Vector width, Vector log_odds, double factor,
                                             Mask active, Streams& streams) {
    const double log_scale = 0.5 * std::log(factor), gain = 0.5 - 0.5 / factor;
    const Vector zero = broadcast(0.0), half = broadcast(0.5), root = square_root(p), beyond = mean - width;
    const Vector nearer = larger(larger(zero - mean, beyond), zero) * root;
    const Vector further = larger(absolute(mean), absolute(beyond)) * root;
    const Vector by_density = broadcast(gain) * further * further - broadcast(log_scale);
    const Vector by_mass = broadcast(2.0) + nearer + half * nearer * nearer;
    const Vector bound = log_odds + select(by_density < by_mass, by_density, by_mass);
    unsigned has_error = 0;
    unsigned possible = mask_to_bits(active & (propose(exponentials(), active, streams) > zero - bound));
    for (; possible != 0; possible &= possible - 1) {
        const int lane = __builtin_ctz(possible);
        const double m = extract_lane(mean, lane), q = extract_lane(p, lane), w = extract_lane(width, lane);
        const double log_masses = log_mass(q * m / factor, q / factor, w) - log_mass(q * m, q, w);
        const double logit = extract_lane(log_odds, lane) + log_masses + gain * q * m * m - log_scale;
        Stream stream = streams.extract(lane);
        const double height = uniform(stream) * std::exp(std::min(extract_lane(bound, lane), 0.0));
        if (height * (1.0 + std::exp(-logit)) < 1.0) has_error |= 1u << lane;
        streams.insert(lane, stream);
    }
    return has_error;
}

// Entries that are only known to lie between limits. With gross errors `sums` are those of `Outliers`, and `errors` holds
// that of each entry in units of the data, or 0.
struct Latent : EntryList {
    explicit Latent(Arguments given)
        : EntryList(std::move(given)), lower(arguments.pointer<Numbers>("lower", n)),
          upper(arguments.pointer<Numbers>("upper", n)), errors(arguments.pointer_or_null<Results>("errors", n)) {}

    // Draw the entries of rows `start` to `stop`, each row from streams of its id; they are stored in units of the data.
    // `weight` has a factor of the precision of each entry, and `log_odds` those of a gross error in each column, which
    // are added to the sums of their tiles.
    void draw(const Given& given, int64_t start, int64_t stop) const {
        check(given, start, stop);
        const double* const weights = given.arguments.pointer_or_null<Numbers>("weight", n);
        const double* const odds = given.arguments.pointer_or_null<Numbers>("log_odds", n_columns);
        const double factor = odds != nullptr ? given.arguments.get<double>("factor") : 1.0;
        require(odds == nullptr || (errors != nullptr && sums != nullptr), "gross errors need sums and errors");
        nb::gil_scoped_release release;
        for (int64_t row = start; row < stop; ++row) {
            const int64_t first = indptr[row], end = indptr[row + 1];
            StreamWords words{};  // lane i draws every eighth entry of the row from a stream of its own
            for (int64_t lane = 0; lane < std::min<int64_t>(WIDTH, end - first); ++lane)
                words.set(lane, stream_of({mix(given.key.high + lane), given.key.low}, given.ids[row]));
            Streams streams = words.streams();
            for (int64_t begin = first; begin < end; begin += WIDTH) {
                const int64_t n = std::min<int64_t>(WIDTH, end - begin);
                double low_of[WIDTH] = {}, high_of[WIDTH] = {}, mean_of[WIDTH] = {}, p_of[WIDTH], unit_of[WIDTH];
                double odds_of[WIDTH] = {};
                std::fill_n(p_of, WIDTH, 1.0);
                std::fill_n(unit_of, WIDTH, 1.0);
                std::copy_n(lower + begin, n, low_of);
                std::copy_n(upper + begin, n, high_of);
                if (weights != nullptr) std::copy_n(weights + begin, n, p_of);
                for (int64_t i = 0; i < n; ++i) {
                    const int64_t column = columns[begin + i];
                    mean_of[i] = given.fitted(row, column);
                    p_of[i] *= given.column_precision[column];
                    unit_of[i] = given.unit(row, column);
                    if (odds != nullptr) odds_of[i] = odds[column];
                }
                const Vector low = load(low_of), high = load(high_of), mean = load(mean_of), unit = load(unit_of);
                Vector p = load(p_of) / broadcast(given.row_variance[row]);
                // What is drawn is the distance from the lower limit, or from the upper one if there is no lower one.
                const Mask from_lower = low > broadcast(-INFINITE), active = first_lanes(n);
                const Vector distance = select(from_lower, mean - low * unit, high * unit - mean);
                const Vector width = (high - low) * unit;
                unsigned gross = 0;
                if (odds != nullptr) gross = draw_gross(distance, p, width, load(odds_of), factor, active, streams);
                if (gross != 0) {
                    bnmf::store(p_of, p);
                    for (unsigned left = gross; left != 0; left &= left - 1)
                        insert_lane(p, __builtin_ctz(left), p_of[__builtin_ctz(left)] / factor);
                }
                const Vector drawn = draw_within_lanes(p * distance, p, width, active, streams) / unit;
                const Vector value = select(from_lower, low + drawn, high - drawn);
                double values[WIDTH];
                bnmf::store(values, select(value > high, high, value));  // rounding may step over a limit
                if (odds != nullptr) std::fill_n(errors + begin, n, 0.0);
                for (; gross != 0; gross &= gross - 1) {
                    const int lane = __builtin_ctz(gross);
                    const double scale = extract_lane(unit, lane), residual = values[lane] * scale - mean_of[lane];
                    Stream stream = streams.extract(lane);
                    const double spread = std::sqrt((1.0 - 1.0 / factor) / p_of[lane]);
                    const double error = (1.0 - 1.0 / factor) * residual - spread * normal(stream);
                    streams.insert(lane, stream);
                    errors[begin + lane] = error / scale;
                    values[lane] -= error / scale;
                    count_gross_error(row, columns[begin + lane], error);
                }
                for (int64_t i = 0; i < n; ++i) store(begin + i, values[i]);
            }
        }
    }

    const double *lower, *upper;
    double* errors;
};

}  // namespace bnmf
