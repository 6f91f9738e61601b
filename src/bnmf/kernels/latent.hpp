// Latent values of entries that are only known to lie between two limits: draws from their truncated normals, or from
// mixtures of two where there may be gross errors.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "lanes.hpp"

namespace bnmf {

// What latent values are drawn given: both factors, the scales of the data, variances in units of the model, and streams.
struct Given {
    Given(Matrix W, Matrix Z, std::optional<Numbers> entry_scale, Numbers row_scale, Numbers row_variance,
          Numbers column_variance, Ids ids, uint64_t key_high, uint64_t key_low)
        : n_rows(int64_t(W.shape(0))), n_columns(int64_t(Z.shape(0))), n_components(int64_t(W.shape(1))), W(W.data()),
          Z(Z.data()), scale_of_column(scales_of(entry_scale, n_columns)),
          scale_of_row(one_or_each(row_scale, n_rows, "row_scale")),
          variance_of_row(one_or_each(row_variance, n_rows, "row_variance")),
          variance_of_column(one_or_each(column_variance, n_columns, "column_variance")), ids(ids.data()),
          key{key_high, key_low}, arrays_{W, Z}, numbers_{row_scale, row_variance, column_variance},
          entry_scale_(entry_scale), ids_(ids) {
        require(W.shape(1) == Z.shape(1), "W and Z must have the same components");
        require_size(ids, n_rows, "ids");
    }

    int64_t n_rows, n_columns, n_components;
    const double *W, *Z;
    Strided scale_of_column, scale_of_row, variance_of_row, variance_of_column;
    const uint64_t* ids;
    Key key;

private:
    std::array<Matrix, 2> arrays_;
    std::array<Numbers, 3> numbers_;
    std::optional<Numbers> entry_scale_;
    Ids ids_;
};

// Numbers, and the place of each of some entries there: -1 for none.
using Target = std::pair<Results, Pointers>;

// Some entries of a matrix, row by row, and every place where their values are stored.
class EntryList {
public:
    EntryList(Pointers indptr, Positions columns, std::vector<Target> targets)
        : n_rows(int64_t(indptr.size()) - 1), n(int64_t(columns.size())), indptr(indptr.data()), columns(columns.data()),
          indptr_(indptr), columns_(columns), targets_(std::move(targets)) {
        require(n_rows >= 0 && this->indptr[0] == 0 && this->indptr[n_rows] == n,
                "indptr must end with the number of entries");
        for (int64_t row = 0; row < n_rows; ++row)
            require(this->indptr[row] <= this->indptr[row + 1], "indptr must ascend");
        for (int64_t i = 0; i < n; ++i) n_columns = std::max(n_columns, int64_t(this->columns[i]) + 1);
        for (const auto& [numbers, places] : targets_) {
            require_size(places, n, "the places of a target");
            for (int64_t i = 0; i < n; ++i)
                require(-1 <= places.data()[i] && places.data()[i] < int64_t(numbers.size()),
                        "places must be inside of their target");
        }
    }

    void check(const Given& given, int64_t start, int64_t stop) const {
        require(given.n_rows == n_rows && given.n_columns >= n_columns, "W and Z must be factors of the data");
        require(0 <= start && start <= stop && stop <= n_rows, "there are no such rows");
    }

    bool is_in_targets(int64_t entry) const {
        return std::any_of(targets_.begin(), targets_.end(), [&](auto& target) { return target.second.data()[entry] >= 0; });
    }

    // Return the value of an entry that is in a target.
    double value(int64_t entry) const {
        for (const auto& [numbers, places] : targets_)
            if (places.data()[entry] >= 0) return numbers.data()[places.data()[entry]];
        return NOT_A_NUMBER;
    }

    // Store the value of an entry in all places.
    void store(int64_t entry, double value) const {
        for (const auto& [numbers, places] : targets_)
            if (places.data()[entry] >= 0) numbers.data()[places.data()[entry]] = value;
    }

    // Return the number of columns, given two sums for each tile of rows and each column.
    int64_t columns_of_sums(const Results& sums) const {
        const int64_t n_tiles = (n_rows - 1 + ROWS_PER_TILE) / ROWS_PER_TILE;
        require(n_tiles == 0 || (sums.size() % (2 * n_tiles) == 0 && int64_t(sums.size()) >= 2 * n_tiles * n_columns),
                "sums must have two numbers for each tile of rows and each column");
        return n_tiles == 0 ? 0 : int64_t(sums.size()) / (2 * n_tiles);
    }

    int64_t n_rows, n, n_columns = 0;  // `n_columns` is that of the columns that have entries, if there are no sums
    const int64_t* indptr;
    const uint32_t* columns;

private:
    Pointers indptr_;
    Positions columns_;
    std::vector<Target> targets_;
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
class Latent : public EntryList {
public:
    Latent(Pointers indptr, Positions columns, Numbers lower, Numbers upper, std::optional<Results> sums,
           std::optional<Results> errors, std::vector<Target> targets)
        : EntryList(indptr, columns, std::move(targets)), lower_(lower), upper_(upper), sums_(sums), errors_(errors) {
        require_size(lower, n, "lower");
        require_size(upper, n, "upper");
        require(sums.has_value() == errors.has_value(), "sums and errors go together");
        if (errors) require_size(*errors, n, "errors");
        for (int64_t i = 0; i < n; ++i)
            require(lower.data()[i] < upper.data()[i] && (lower.data()[i] > -INFINITE || upper.data()[i] < INFINITE),
                    "limits must be apart, and one of them finite");
        if (sums) n_columns = columns_of_sums(*sums);
    }

    // Draw the entries of rows `start` to `stop`, each row from streams of its id; they are stored in units of the data.
    // `weight` has a factor of the precision of each entry, and `log_odds` those of a gross error in each column, which
    // are added to the sums of their tiles.
    void draw(const Given& given, std::optional<Numbers> weight, std::optional<Numbers> log_odds, double factor,
              int64_t start, int64_t stop) const {
        check(given, start, stop);
        const double* weights = pointer_or_null(weight, n, "weight");
        const double* odds = pointer_or_null(log_odds, n_columns, "log_odds");
        require(odds == nullptr || (sums_ && factor > 1.0), "gross errors need sums and a factor above 1");
        nb::gil_scoped_release release;
        const int64_t n_components = given.n_components;
        const double *const lower = lower_.data(), *const upper = upper_.data();
        std::vector<double> precision_of(n_columns);
        for (int64_t column = 0; column < n_columns; ++column)
            precision_of[column] = 1.0 / given.variance_of_column[column];
        for (int64_t row = start; row < stop; ++row) {
            const int64_t first = indptr[row], end = indptr[row + 1];
            StreamWords words{};  // lane i draws every eighth entry of the row from a stream of its own
            for (int64_t lane = 0; lane < std::min<int64_t>(WIDTH, end - first); ++lane)
                words.set(lane, stream_of({mix(given.key.high + lane), given.key.low}, given.ids[row]));
            Streams streams = words.streams();
            const double* w = given.W + row * n_components;
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
                    mean_of[i] = dot(w, given.Z + column * n_components, n_components);
                    p_of[i] *= precision_of[column];
                    unit_of[i] = given.scale_of_column[column];
                    if (odds != nullptr) odds_of[i] = odds[column];
                }
                const Vector low = load(low_of), high = load(high_of), mean = load(mean_of);
                const Vector unit = load(unit_of) * broadcast(given.scale_of_row[row]);
                Vector p = load(p_of) / broadcast(given.variance_of_row[row]);
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
                if (odds != nullptr) std::fill_n(errors_->data() + begin, n, 0.0);
                for (; gross != 0; gross &= gross - 1) {
                    const int lane = __builtin_ctz(gross);
                    const int64_t column = columns[begin + lane];
                    const double scale = extract_lane(unit, lane), residual = values[lane] * scale - mean_of[lane];
                    Stream stream = streams.extract(lane);
                    const double spread = std::sqrt((1.0 - 1.0 / factor) / p_of[lane]);
                    const double error = (1.0 - 1.0 / factor) * residual - spread * normal(stream);
                    streams.insert(lane, stream);
                    errors_->data()[begin + lane] = error / scale;
                    values[lane] -= error / scale;
                    double* const sums = sums_->data() + row / ROWS_PER_TILE * 2 * n_columns;
                    sums[column] += 1.0;
                    sums[n_columns + column] += error * error;
                }
                for (int64_t i = 0; i < n; ++i) store(begin + i, values[i]);
            }
        }
    }

private:
    Numbers lower_, upper_;
    std::optional<Results> sums_, errors_;
};

}  // namespace bnmf
