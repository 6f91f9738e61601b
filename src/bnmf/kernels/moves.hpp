// Moves that leave the product W Z as it is: the scale of each component, and shears of pairs of components.
//
// The rescaling move draws the scale of each component. (w_:k, z_k:) and (s w_:k, z_k: / s) have the same likelihood, and
// plain Gibbs sampling moves slowly along that ridge. With penalties R_W and R_Z, minus the log densities of the priors,
// the log density of u = log s is (M - N) u - R_W(s) - R_Z(1/s). One slice sampling step (Neal 2003: stepping out, then
// shrinkage) updates each component in turn. The log density need not be concave: under a truncated normal prior with a
// positive mean it is not.
//
// The shear move takes pairs of components j and k: w_:j + ε w_:k together with z_k: - ε z_j:. The volume stays as it is
// too, so ε has the density of the priors along the shear, on the interval where nonnegative factors stay so. That is a
// truncated normal, drawn exactly; with a max term it is log-concave, and one slice sampling step updates it. Shears and
// rescaling together reach every W S, S⁻¹ Z. Factors with a term in |w| are not sheared.
#pragma once

#include <vector>

#include "arrays.hpp"

namespace bnmf {

// Largest |u| of an interval, beyond which exp(u) or exp(-u) overflows and the density is zero.
constexpr double MAX_LOG_SCALE = 750.0;
// Proposals of a slice sampling step. Each failure shrinks the interval towards a point of the slice, so that only
// densities beyond the range of floating point use them up; the result is NaN then.
constexpr int MAX_SHRINKS = 1000;

// A factor of n_rows by n_components numbers, and its prior.
struct Factor {
    double* data;
    int64_t n_rows, n_components, length;  // `length` is the number of rows, padded to whole vectors
    Prior prior;

    Factor(const WritableMatrix& W, const PriorArrays& prior)
        : data(W.data()), n_rows(int64_t(W.shape(0))), n_components(int64_t(W.shape(1))), length(padded_length(n_rows)),
          prior(prior.of_factor(n_rows, n_components)) {}

    double& at(int64_t row, int64_t k) const { return data[row * n_components + k]; }
    bool has_max_term() const { return prior.max_rate != 0.0; }

    // Copy numbers by rows to columns that are padded with zeros: column k starts at k * length.
    void copy_to_columns(const double* rows, double* columns) const {
        for (int64_t k = 0; k < n_components; ++k)
            for (int64_t row = n_rows; row < length; ++row) columns[k * length + row] = 0.0;
        for (int64_t row = 0; row < n_rows; ++row)
            for (int64_t k = 0; k < n_components; ++k) columns[k * length + row] = rows[row * n_components + k];
    }
};

// A factor by columns, as far as a move needs it, and a number for each row: the largest of the entries that stay.
struct Columns : Factor {
    double *w, *kinks;

    Columns(const Factor& factor, double* numbers) : Factor(factor), w(numbers), kinks(w + n_components * length) {}

    // Write the largest entry of each row other than the j-th, if there is a max term.
    void set_kinks(int64_t j) const {
        if (!has_max_term()) return;
        for (int64_t i = 0; i < length; i += WIDTH) {
            Vector kink = broadcast(0.0);
            for (int64_t k = 0; k < n_components; ++k)
                if (k != j) kink = larger(kink, load(w + k * length + i));
            store(kinks + i, kink);
        }
    }

    // Return the penalty of the largest entry of each row, given the vector of entries from row i on that change.
    template <typename F> double max_penalty(F changed) const {
        if (!has_max_term()) return 0.0;
        Vector total = broadcast(0.0);
        for (int64_t i = 0; i < length; i += WIDTH) total = total + larger(changed(i), load(kinks + i));
        return prior.max_rate * lane_sum(total);
    }
};

// Shrink an interval that holds 0 to a point where `log_density` reaches the level, and return it, or NaN.
template <typename F> double shrink(double low, double high, double level, Stream& stream, F log_density) {
    for (int i = 0; i < MAX_SHRINKS; ++i) {
        const double x = low + uniform(stream) * (high - low);
        if (log_density(x) >= level) return x;
        (x < 0.0 ? low : high) = x;
    }
    return NOT_A_NUMBER;
}

// --- the rescaling move

// One factor of the rescaling move. Only a max term needs its columns.
struct Rescaled : Columns {
    std::vector<double> sums, quadratics;   // Σ linear w + absolute |w| and Σ quadratic w², for each component
    std::vector<double> scales;             // what components have been multiplied by
    double linear_term, quadratic_term;     // of the penalty of the current component at scale s: a1 s + a2 s²/2
    double* column;

    Rescaled(const Factor& factor, double* numbers)
        : Columns(factor, numbers), sums(n_components), quadratics(n_components), scales(n_components, 1.0) {
        for (int64_t row = 0; row < n_rows; ++row) {
            const double *linear = prior.linear.row(row), *quadratic = prior.quadratic.row(row);
            for (int64_t k = 0; k < n_components; ++k) {
                sums[k] += linear[k] * at(row, k);
                quadratics[k] += quadratic[k] * (at(row, k) * at(row, k));
            }
        }
        if (prior.absolute.data != nullptr)
            for (int64_t row = 0; row < n_rows; ++row)
                for (int64_t k = 0; k < n_components; ++k)
                    sums[k] += prior.absolute.row(row)[k] * std::fabs(at(row, k));
        if (has_max_term()) copy_to_columns(data, w);
    }

    static int64_t size(const Factor& factor) {
        return factor.has_max_term() ? (factor.n_components + 1) * factor.length : 0;
    }

    // Prepare the penalty of component k.
    void begin(int64_t k) {
        linear_term = sums[k] + pairwise_term(k);
        quadratic_term = quadratics[k];
        column = w + k * length;
        set_kinks(k);
    }

    // Return pairwise * Σ_m w_mk Σ_{j≠k} scales_j w_mj.
    double pairwise_term(int64_t k) const {
        if (prior.pairwise == 0.0) return 0.0;
        double total = 0.0;
        for (int64_t row = 0; row < n_rows; ++row) {
            double others = 0.0;
            for (int64_t j = 0; j < n_components; ++j)
                if (j != k) others += scales[j] * at(row, j);
            total += at(row, k) * others;
        }
        return prior.pairwise * total;
    }

    // Return whether the current component has underflowed to zero, and has no scale to draw.
    bool is_zero() const {
        if (linear_term != 0.0 || quadratic_term != 0.0) return false;
        return !has_max_term() || std::all_of(column, column + length, [](double x) { return !(x > 0.0); });
    }

    // Return the penalty of the current component at a scale, without and with the largest of each row.
    double penalty(double s) const { return (linear_term + 0.5 * quadratic_term * s) * s; }

    double max_penalty_at(double s) const {
        return max_penalty([&](int64_t i) { return broadcast(s) * load(column + i); });
    }

    // Set the scale of component k, which enters the penalties of others with its new scale.
    void set_scale(int64_t k, double scale) {
        scales[k] = scale;
        if (has_max_term())
            for (int64_t i = 0; i < length; i += WIDTH) store(column + i, broadcast(scale) * load(column + i));
    }

    void finish() const {
        for (int64_t row = 0; row < n_rows; ++row)
            for (int64_t k = 0; k < n_components; ++k) at(row, k) *= scales[k];
    }
};

// Rescale the columns of W and Z in place.
inline void rescale(Rescaled W, Rescaled Z, Key key) {
    const double power = double(W.n_rows - Z.n_rows);
    const double width = 3.0 / std::sqrt(double(W.n_rows + Z.n_rows));
    for (int64_t k = 0; k < W.n_components; ++k) {
        W.begin(k);
        Z.begin(k);
        if (W.is_zero() || Z.is_zero()) continue;
        const auto log_density = [&](double u) {
            const double s = std::exp(u), t = std::exp(-u);
            return power * u - W.penalty(s) - Z.penalty(t) - W.max_penalty_at(s) - Z.max_penalty_at(t);
        };
        Stream stream = stream_of(key, k);
        const double drop = exponential(stream);  // the level of the slice is uniform below the density
        const double level = log_density(0.0) - drop;
        double low = -width * uniform(stream), high = low + width;
        while (low > -MAX_LOG_SCALE && log_density(low) > level) low -= width;
        while (high < MAX_LOG_SCALE && log_density(high) > level) high += width;
        const double u = shrink(low, high, level, stream, log_density);
        W.set_scale(k, std::exp(u));
        Z.set_scale(k, std::exp(-u));
    }
    W.finish();
    Z.finish();
}

// --- the shear move

// Coefficients by columns: of column k from k * stride on, with a step of 1 from row to row, or 0 if they are the same.
struct ColumnCoefficients {
    double* data;
    int64_t stride, step;
};

// One factor of the shear move: its components and the coefficients of its prior as columns.
struct Sheared : Columns {
    double* sums;  // the sum of each row
    ColumnCoefficients linear, quadratic;
    double lowest;  // the smallest value of an entry: 0 or -inf

    Sheared(const Factor& factor, double* numbers)
        : Columns(factor, numbers), sums(kinks + length), linear(copied(prior.linear, sums + length)),
          quadratic(copied(prior.quadratic, linear.data + n_components * linear.stride)),
          lowest(prior.absolute.data != nullptr ? -INFINITE : 0.0) {
        copy_to_columns(data, w);
        for (int64_t i = 0; i < length; i += WIDTH) {
            Vector total = broadcast(0.0);
            for (int64_t k = 0; k < n_components; ++k) total = total + load(w + k * length + i);
            store(sums + i, total);
        }
    }

    static int64_t size(const Factor& factor) {
        const Prior& prior = factor.prior;
        const int64_t strides =
            (prior.linear.stride ? factor.length : WIDTH) + (prior.quadratic.stride ? factor.length : WIDTH);
        return (factor.n_components + 2) * factor.length + factor.n_components * strides;
    }

    // Copy coefficients to columns; those that are the same for all rows fill one vector.
    ColumnCoefficients copied(const Strided& coefficients, double* to) const {
        if (coefficients.stride != 0) {
            copy_to_columns(coefficients.data, to);
            return {to, length, 1};
        }
        for (int64_t k = 0; k < n_components; ++k) store(to + k * WIDTH, broadcast(coefficients.data[k]));
        return {to, WIDTH, 0};
    }

    // Write slope and curvature of the penalty of w_:j + ε w_:k at ε = 0, and return how far ε can go before an entry
    // leaves its range; a negative number if there is nothing to add.
    double terms_along(int64_t j, int64_t k, double& slope, double& curvature) const {
        const double *changed = w + j * length, *added = w + k * length;
        const double *lin = linear.data + j * linear.stride, *quad = quadratic.data + j * quadratic.stride;
        const Vector pairwise = broadcast(prior.pairwise);
        Vector slopes = broadcast(0.0), curvatures = broadcast(0.0), ratios = broadcast(0.0);
        for (int64_t i = 0; i < length; i += WIDTH) {
            const Vector x = load(changed + i), y = load(added + i), q = load(quad + i * quadratic.step);
            const Vector force = load(lin + i * linear.step) + q * x + pairwise * (load(sums + i) - x);
            slopes = add_product(slopes, force, y);
            curvatures = add_product(curvatures, q * y, y);
            ratios = larger(ratios, y / x);  // 0 / 0 is no number, and is ignored
        }
        slope = lane_sum(slopes);
        curvature = lane_sum(curvatures);
        if (lowest < 0.0) return curvature > 0.0 ? INFINITE : -1.0;  // a normal prior, whose curvature is positive
        const double ratio = lane_maximum(ratios);
        return ratio > 0.0 ? 1.0 / ratio : -1.0;
    }

    // Return the penalty of the largest entry of each row of w_:j + ε w_:k and the other columns.
    double max_penalty_along(int64_t j, int64_t k, double epsilon) const {
        return max_penalty([&](int64_t i) {
            return add_product(load(w + j * length + i), broadcast(epsilon), load(w + k * length + i));
        });
    }

    // Add a multiple of column k to column j; what rounding makes negative is zero, and what is no number stays.
    void add_column(int64_t j, int64_t k, double epsilon) const {
        const Vector factor = broadcast(epsilon), bound = broadcast(lowest);
        for (int64_t i = 0; i < length; i += WIDTH) {
            const Vector old = load(w + j * length + i);
            Vector changed = add_product(old, factor, load(w + k * length + i));
            changed = select(changed < bound, bound, changed);
            store(w + j * length + i, changed);
            store(sums + i, load(sums + i) + (changed - old));
        }
    }

    void finish() const {
        for (int64_t row = 0; row < n_rows; ++row)
            for (int64_t k = 0; k < n_components; ++k) at(row, k) = w[k * length + row];
    }
};

// Draw from exp(b ε - p ε²/2) on an interval, each end of which may be infinite.
inline double draw_between(double b, double p, double low, double high, Stream& stream) {
    if (low > -INFINITE) return low + draw_within(b - p * low, p, high - low, stream);
    if (high < INFINITE) return high - draw_within(p * high - b, p, INFINITE, stream);
    return draw_real(b, p, 0.0, stream);
}

// Draw ε for w_:j + ε w_:k and z_k: - ε z_j:, and apply it.
inline void shear_pair(int64_t j, int64_t k, const Sheared& W, const Sheared& Z, Stream stream) {
    double slope_W, slope_Z, curvature_W, curvature_Z;
    const double low = -W.terms_along(j, k, slope_W, curvature_W), high = Z.terms_along(k, j, slope_Z, curvature_Z);
    if (low > 0.0 || high < 0.0) return;  // a component that has underflowed to zero has nothing to move
    const double b = slope_Z - slope_W, p = curvature_W + curvature_Z;
    double epsilon;
    if (W.has_max_term() || Z.has_max_term()) {
        W.set_kinks(j);
        Z.set_kinks(k);
        const auto max_penalty = [&](double x) { return W.max_penalty_along(j, k, x) + Z.max_penalty_along(k, j, -x); };
        const double drop = exponential(stream);
        const double level = -max_penalty(0.0) - drop;
        const auto log_density = [&](double x) { return (b - 0.5 * p * x) * x - max_penalty(x); };
        epsilon = shrink(low, high, level, stream, log_density);
    } else {
        epsilon = draw_between(b, p, low, high, stream);
    }
    W.add_column(j, k, epsilon);
    Z.add_column(k, j, -epsilon);
}

// Shear the columns of W and Z in place. Each component j is sheared with j + d for some distances d, counted around the
// components: from `first` to `end` - 1, in a count that goes around the distances again and again.
inline void shear(const Sheared& W, const Sheared& Z, Key key, int64_t first, int64_t end) {
    const int64_t n_components = W.n_components;
    require(n_components > 1 && 0 <= first, "a shear needs two components and a distance");
    for (int64_t count = first; count < end; ++count) {
        const int64_t distance = 1 + count % (n_components - 1);
        for (int64_t j = 0; j < n_components; ++j)
            shear_pair(j, (j + distance) % n_components, W, Z, stream_of(key, (count - first) * n_components + j));
    }
    W.finish();
    Z.finish();
}

}  // namespace bnmf
