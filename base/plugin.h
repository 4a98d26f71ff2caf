#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options.h"
#include "base/status.h"

namespace espalier {

// How samplers, pruners, policies, pool-size rules and engines are chosen by name. Each is one
// source file that ends with a row, and one line in the table of its kind. The table checks names
// and options, so that a plug-in is only made from values that it takes, and all kinds refuse
// alike. docs/extending.md shows one of each.

// One option of a plug-in: a number, true or false, one of a few words, another plug-in, a text,
// rows of numbers, or an object.
struct PluginOption {
  std::string_view name;
  double default_value = 0;  // of a flag 0 or 1, of a word its place in `words`
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool whole = false;        // takes whole numbers only
  bool open = false;         // `least` and `most` themselves are out of range
  std::string_view meaning;  // part of a sentence, for lists: "trials before the first verdict"
  bool text = false;         // takes any text, and none by default; the above is of numbers
  bool repeated = false;     // a text that may be given several times
  bool flag = false;         // takes true and false; 1 and 0 mean the same
  std::vector<std::string_view> words{};  // takes one of these
  // Takes the name of a plug-in of the table that its plug-in makes it from, with options of that
  // one, and is this one by default: {"name": "patient", "pruner": {"name": "asha", "eta": 4}}.
  std::string_view plugin{};
  bool optional = false;  // a number that has no value unless it is given
  bool object = false;    // takes an object, whose keys others know; an empty one by default
  bool rows = false;      // takes lists of numbers, all finite and equally many; none by default

  // Whether it is none of numbers.
  bool wordy() const { return text || object || rows || !words.empty() || !plugin.empty(); }
  // Of words and flags only what is among them. False for every number that is not finite.
  bool Takes(const OptionValue& value) const;
  // What it takes: "a whole number from 1 to 1000", "a number >= 0", "a number > 0", "a number > 0
  // and < 1", "true or false", "none, ipop or bipop", "the name of one, and options of it", "text",
  // "an object", "lists of equally many numbers".
  std::string Range() const;
  // What it is if it is not given, as a command line takes it; empty for a text, an object, rows,
  // and for a number that may be left out.
  std::string DefaultText() const;
};

// What people are told of a plug-in.
struct PluginInfo {
  std::string_view name;
  std::string_view summary;  // one line, part of a sentence
  std::vector<PluginOption> options{};
};

// A value for each option of a plug-in: the given one, else its default.
class OptionValues {
 public:
  // `values`: of words their places in their options, of flags 0 and 1. `texts`: of objects too.
  explicit OptionValues(std::map<std::string, double> values, TextOptions texts = {},
                        Options plugins = {}, Options rows = {})
      : values_(std::move(values)),
        texts_(std::move(texts)),
        plugins_(std::move(plugins)),
        rows_(std::move(rows)) {}

  // The plug-in must have an option of that name.
  double operator[](std::string_view name) const;
  std::int64_t Whole(std::string_view name) const;
  bool Flag(std::string_view name) const { return (*this)[name] > 0; }
  // Of a number that may be left out.
  std::optional<double> Given(std::string_view name) const;
  // Of a word: the enumerator at its place, for an enum that has them in the order of `words`.
  template <typename Enum>
  Enum Chosen(std::string_view name) const {
    return static_cast<Enum>(Whole(name));
  }
  // Of an option that is a plug-in: its name, and its options by their own names.
  std::string PluginName(std::string_view name) const;
  Options PluginOptions(std::string_view name) const;
  // Empty where it was not given.
  std::string Text(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  // None where they were not given.
  std::vector<std::vector<double>> Rows(std::string_view name) const;
  // The JSON of an object.
  std::string Object(std::string_view name) const;

 private:
  std::map<std::string, double> values_;
  TextOptions texts_;
  Options plugins_;  // by their names, and "name.option"
  Options rows_;
};

// InvalidArgument, naming what is known or right:
//   sampler "tpee" is unknown; known are random, grid, tpe, queue
//   sampler "grid" has no option "pionts"; it has points
//   sampler "grid": option "points" needs a whole number from 1 to 1000, got 0
//   sampler "cma_es": option "restart" needs none, ipop or bipop, got "ipo", did you mean "ipop"?
// `kind` is the first word.
absl::Status UnknownPlugin(std::string_view kind, std::string_view name,
                           const std::vector<std::string>& known);
absl::StatusOr<OptionValues> ReadOptions(std::string_view kind, const PluginInfo& plugin,
                                         const Options& given, const TextOptions& texts = {});
// Cuts off the fractions of options that take whole numbers. Returns what it did, for people.
std::vector<std::string> CutFractions(std::string_view kind, const PluginInfo& plugin,
                                      Options& options);
// The refusal of a row's `make`, for options that fit no range by itself; the table says of which
// plug-in:
//   option "max_steps" needs 0 or at least min_steps (9), got 4
absl::Status OptionNeeds(std::string_view option, const std::string& needed,
                         const OptionValue& got);
absl::Status RefusedBy(std::string_view kind, std::string_view name, const absl::Status& refusal);

// `Context` is what making one takes beside its options; nothing for most kinds.
template <typename Product, typename... Context>
struct PluginRow {
  PluginInfo info;
  std::function<absl::StatusOr<std::unique_ptr<Product>>(const OptionValues&, const Context&...)>
      make;
};

// All plug-ins of a kind, in the order of its rows. Immutable: any thread may use it.
template <typename Product, typename... Context>
class PluginTable {
 public:
  using Row = PluginRow<Product, Context...>;

  PluginTable(std::string_view kind, std::vector<Row> rows) : kind_(kind), rows_(std::move(rows)) {}

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const Row& row : rows_) names.emplace_back(row.info.name);
    return names;
  }

  std::vector<PluginInfo> Infos() const {
    std::vector<PluginInfo> infos;
    for (const Row& row : rows_) infos.push_back(row.info);
    return infos;
  }

  absl::StatusOr<std::unique_ptr<Product>> Make(std::string_view name, const Options& options,
                                                const Context&... context) const {
    return Make(name, options, TextOptions{}, context...);
  }
  absl::StatusOr<std::unique_ptr<Product>> Make(std::string_view name, const Options& options,
                                                const TextOptions& texts,
                                                const Context&... context) const {
    for (const Row& row : rows_) {
      if (row.info.name != name) continue;
      ESPALIER_ASSIGN_OR_RETURN(const OptionValues values,
                                ReadOptions(kind_, row.info, options, texts));
      absl::StatusOr<std::unique_ptr<Product>> made = row.make(values, context...);
      if (!made.ok()) return RefusedBy(kind_, name, made.status());
      return made;
    }
    return UnknownPlugin(kind_, name, Names());
  }

  // For options that were taken before the table refused fractions. Nothing for an unknown name.
  std::vector<std::string> CutFractions(std::string_view name, Options& options) const {
    for (const Row& row : rows_) {
      if (row.info.name == name) return espalier::CutFractions(kind_, row.info, options);
    }
    return {};
  }

 private:
  std::string_view kind_;
  std::vector<Row> rows_;
};

}  // namespace espalier
