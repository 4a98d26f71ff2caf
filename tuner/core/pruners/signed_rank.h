#pragma once

#include <vector>

namespace espalier {

// The Wilcoxon signed-rank test (Wilcoxon, Biometrics Bulletin 1, 1945) of whether differences tend
// to be above 0: the probability of a sum of positive ranks as large as theirs, or larger, where
// each difference is as likely to have the other sign. Ranks of equal sizes are their mean, and
// those of zeros count half on each side (Pratt, JASA 54, 1959, describes the ways to treat zeros).
//
// Exact up to 50 differences of unlike sizes, and up to 13 others; beyond, by the normal
// distribution with the variance reduced for equal sizes: the choices of scipy.stats.wilcoxon
// (1.17) for zero_method "zsplit", alternative "greater" and no correction for continuity. Requires
// one finite difference at least.
double SignedRankProbability(const std::vector<double>& differences);

}  // namespace espalier
