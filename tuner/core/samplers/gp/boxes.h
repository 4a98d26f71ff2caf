#pragma once

#include <Eigen/Core>

namespace espalier::samplers::gp {

// Boxes without overlap, a row for each, of a space in which each coordinate is to be maximised.
// Some reach to infinity.
struct Boxes {
  Eigen::MatrixXd low;
  Eigen::MatrixXd width;
};

// What is worse than all points in each objective, by a tenth or so: where hypervolume begins.
Eigen::RowVectorXd ReferencePoint(const Eigen::MatrixXd& points);

// The region that lies above the reference point and that none of the points (one a row) dominates,
// so that the hypervolume which a new point adds is the sum of what it cuts off the boxes (Daulton
// et al. 2020, eq. 1; the boxes after Lacour, Klamroth and Fonseca 2017). Of a front that makes too
// many boxes only a part is used.
Boxes NonDominatedBoxes(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& reference);

}  // namespace espalier::samplers::gp
