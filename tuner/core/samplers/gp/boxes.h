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

// What lies beyond the front of the points, in each objective by 1/H of its extent there (at least
// a tenth of it; an extent of less than 1, which is what values vary by, counts as 1), so that
// volume at the edges is worth no more than volume between points. H is how many parts of a side
// the front's points divide a simplex into (Ishibuchi et al. 2018: How to Specify a Reference Point
// in Hypervolume Calculation for Fair Performance Comparison). It is never beyond ReferencePoint,
// and is that where the front is one point.
Eigen::RowVectorXd ReferenceBeyondFront(const Eigen::MatrixXd& points);

// The region that lies above the reference point and that none of the points (one a row) dominates,
// so that the hypervolume which a new point adds is the sum of what it cuts off the boxes (Daulton
// et al. 2020, eq. 1; the boxes after Lacour, Klamroth and Fonseca 2017). Of a front that makes too
// many boxes only a part is used.
Boxes NonDominatedBoxes(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& reference);

}  // namespace espalier::samplers::gp
