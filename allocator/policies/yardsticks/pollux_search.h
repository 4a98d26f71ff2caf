#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "allocator/policies/yardsticks/nsga2.h"
#include "allocator/policies/yardsticks/pollux_fitness.h"
#include "allocator/pool/board.h"

namespace espalier {

// What Pollux searches: a matrix of replicas by job and node, in the artifact's operators
// (simulator/pollux.py of petuum/adaptdl, branch osdi21-artifact). A genome is the matrix row by
// row; rows are jobs by attained service. Jobs that are left alone come first, since earlier rows
// take what several want. Costs are the negated power mean and the negated utility. The placements
// on the board are what a restart is counted from. Holds pointers to board and pool.
class PolluxSearch : public GeneticProblem {
 public:
  PolluxSearch(const Board& board, const Pool& pool, const PolluxFitnessOptions& options);

  std::size_t rows() const { return rows_.size(); }
  std::size_t columns() const { return nodes_.size(); }
  std::size_t holder_of(std::size_t row) const { return rows_[row].holder; }
  const Genome& base() const { return base_; }

  void Cross(Genome& a, Genome& b, Random& random) override;
  void Mutate(Genome& genome, Random& random) override;
  void Repair(Genome& genome, Random& random) override;
  Costs Evaluate(const Genome& genome) override;

 private:
  struct Row {
    std::size_t holder = 0;  // on the board
    std::size_t job = 0;     // in the pool
    int least = 1;
    int most = 1;
    bool stays = false;
  };
  struct Column {
    int capacity = 0;
    int type = 0;
    bool draining = false;
  };

  void RepairRow(std::size_t row, std::uint16_t* cells, Random& random);
  void KeepOneType(std::uint16_t* cells) const;
  void CapReplicas(std::uint16_t* cells, int most, Random& random);
  // The most that the cell may hold.
  int Cap(std::size_t row, std::size_t column) const;

  PolluxObjectives objectives_;
  std::vector<Row> rows_;
  std::vector<Column> nodes_;
  int types_ = 1;
  Genome base_;
  // Kept between calls so that they need not be allocated again.
  std::vector<int> left_;
  std::vector<char> spanned_;
  std::vector<double> speedups_;
  std::vector<std::size_t> order_;
};

}  // namespace espalier
