// What one may do with a search space: check, sample, describe, convert.

#include "search_spaces/formats/optuna/space.h"

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "search_spaces/formats/nni/sampling.h"
#include "search_spaces/formats/nni/search_space_reading.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/space_text.h"
#include "tuner/study_file/text_file.h"

namespace espalier {
namespace {

struct SpaceArguments {
  std::string file;
  std::vector<std::string> files;  // of check
  int count = 5;
  std::uint64_t seed = 0;
  bool as_nni = false;
  std::string format = "json";
  std::string to;
};

struct LoadedSpace {
  SearchSpace space;
  std::vector<std::string> notes;
};

std::string NameOf(const std::string& file) { return file == "-" ? "standard input" : file; }

// A file's text, or that of standard input for "-".
absl::StatusOr<std::string> ReadText(const std::string& file) {
  if (file != "-") return ReadFile(file);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

absl::Status CheckIsJson(const std::string& file, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return absl::InvalidArgumentError(file + ": is empty");
  if (text[first] == '{' || text[first] == '[') return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": is not JSON; YAML is read from a file whose name ends in .yaml or .yml"));
}

// Where the space is: a study file has it under "search_space", or names another file there.
absl::StatusOr<std::string> PointerToSpace(const std::string& file, const std::string& text) {
  const nlohmann::json parsed = ParseJson(text);
  if (!parsed.is_object()) return "";
  const auto inner = parsed.find("search_space");
  if (inner == parsed.end()) return "";
  if (inner->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": is a study whose search space is the file ", inner->dump(), ": give that one"));
  }
  return inner->is_object() && !inner->contains("_type") ? "/search_space" : "";
}

// In NNI's format or Optuna's. What is wrong is printed, one line each.
absl::StatusOr<LoadedSpace> Load(const std::string& path) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string given, ReadText(path));
  const std::string file = NameOf(path);
  ESPALIER_ASSIGN_OR_RETURN(const std::string text, JsonInFile(given, file));
  ESPALIER_RETURN_IF_ERROR(CheckIsJson(file, text));
  OptunaReading result;
  if (LooksLikeOptuna(text)) {
    result = ReadOptunaSpace(text);
  } else {
    ESPALIER_ASSIGN_OR_RETURN(const std::string pointer, PointerToSpace(file, text));
    result.reading = ReadSearchSpace(text, pointer);
  }
  const std::vector<SpaceFlaw>& flaws = result.reading.flaws;
  for (const SpaceFlaw& flaw : flaws) {
    std::fprintf(stderr, "%s: %s\n", file.c_str(), flaw.Text().c_str());
  }
  if (flaws.empty()) return LoadedSpace{std::move(result.reading.space), std::move(result.notes)};
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", flaws.size(), flaws.size() == 1 ? " error" : " errors"));
}

// What is in the file's space, in words.
absl::StatusOr<std::string> CheckFile(const std::string& file) {
  ESPALIER_ASSIGN_OR_RETURN(const LoadedSpace loaded, Load(file));
  if (const absl::Status variables = loaded.space.CheckVariables(); !variables.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(file), ": ", std::string(variables.message())));
  }
  return SpaceSummary(loaded.space);
}

absl::StatusOr<ExitCode> Check(const SpaceArguments& arguments) {
  ExitCode code = ExitCode::kOk;
  for (const std::string& file : arguments.files) {
    const absl::StatusOr<std::string> summary = CheckFile(file);
    if (summary.ok()) {
      std::printf("%s: OK, %s\n", NameOf(file).c_str(), summary->c_str());
    } else {
      code = Fail("space check", summary.status());
    }
  }
  return code;
}

absl::StatusOr<ExitCode> Sample(const SpaceArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const LoadedSpace loaded, Load(arguments.file));
  std::vector<Parameters> samples;
  NumpyGenerator generator(arguments.seed);
  for (int i = 0; i < arguments.count; ++i) {
    if (arguments.as_nni) {
      ESPALIER_ASSIGN_OR_RETURN(Parameters sample, SampleAsNni(loaded.space, generator));
      samples.push_back(std::move(sample));
    } else {
      // As a study seeds its trials.
      Random random(MixSeed(arguments.seed, static_cast<std::uint64_t>(i) + 1));
      samples.push_back(loaded.space.Sample(random));
    }
  }
  const std::string text = arguments.format == "csv" ? SamplesCsv(loaded.space, samples)
                                                     : SamplesJson(loaded.space, samples);
  std::fputs(text.c_str(), stdout);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> DescribeSpace(const SpaceArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const LoadedSpace loaded, Load(arguments.file));
  std::fputs(SpaceTable(loaded.space).c_str(), stdout);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Convert(const SpaceArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(LoadedSpace loaded, Load(arguments.file));
  OptunaText converted;
  if (arguments.to == "optuna") {
    converted = ToOptuna(loaded.space);
  } else {
    converted.json = loaded.space.ToJson();
    converted.notes = std::move(loaded.notes);
  }
  for (const std::string& flaw : converted.flaws) {
    std::fprintf(stderr, "%s: %s\n", NameOf(arguments.file).c_str(), flaw.c_str());
  }
  if (!converted.flaws.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(arguments.file), ": ", converted.flaws.size(),
                     converted.flaws.size() == 1 ? " parameter has" : " parameters have",
                     " no equivalent in Optuna's format; nothing was converted"));
  }
  for (const std::string& note : converted.notes) {
    std::fprintf(stderr, "note: %s\n", note.c_str());
  }
  std::printf("%s\n", converted.json.c_str());
  return ExitCode::kOk;
}

using SpacePart = VerbPart<SpaceArguments>;

// `file` is a string, or a vector of them where several may be given.
template <typename File>
CliCommand* AddPart(CliCommand& command, File& file, const char* name, const char* purpose,
                    const char* examples) {
  CliCommand* part = command.AddCommand(name, purpose);
  part->Footer(std::string("Example:\n") + examples);
  part->AddOption("file", file,
                  "Search space: JSON in NNI's format or Optuna's, or a study file; - reads "
                  "standard input")
      .Required()
      .TypeName("FILE");
  return part;
}

void AddSample(CliCommand& command, SpaceArguments& arguments, std::vector<SpacePart>& parts) {
  CliCommand* sample =
      AddPart(command, arguments.file, "sample",
              "Print parameters drawn from a search space: those that a study with "
              "the random sampler and this seed draws, repetitions included (of a "
              "finite space a study tries nothing twice: it draws on)",
              "  tuner space sample space.json -n 20 --seed 7\n"
              "  tuner space sample space.json -n 1000 --format csv > draws.csv\n"
              "  tuner space sample space.json --seed 7 --as-nni\n");
  constexpr int kMostDrawn = 1'000'000;
  sample->AddOption("-n,--count", arguments.count, "Number of draws")
      .Between(1, kMostDrawn)
      .ShowDefault();
  sample->AddOption("--seed", arguments.seed, "The same seed gives the same values everywhere")
      .ShowDefault();
  sample
      ->AddOption("--format", arguments.format,
                  "json: one object per line, as trials get it; csv: a column for each parameter")
      .OneOf({"json", "csv"})
      .ShowDefault();
  sample->AddFlag(
      "--as-nni", arguments.as_nni,
      "Draw what NNI's Random tuner would draw with this seed, before it replaces repetitions");
  parts.push_back({sample, Sample});
}

void AddConvert(CliCommand& command, SpaceArguments& arguments, std::vector<SpacePart>& parts) {
  CliCommand* convert =
      AddPart(command, arguments.file, "convert",
              "Write a search space in the other format. If that format cannot "
              "express it all, say what is missing and write nothing",
              "  tuner space convert space.json --to optuna > distributions.json\n"
              "  tuner space convert distributions.json --to nni\n");
  convert
      ->AddOption("--to", arguments.to, "Target format: nni (which Espalier uses, too) or optuna")
      .OneOf({"nni", "optuna"})
      .Required();
  parts.push_back({convert, Convert});
}

}  // namespace

VerbAction AddSpace(CliCommand& command) {
  auto arguments = std::make_shared<SpaceArguments>();
  command.RequireCommand();
  std::vector<SpacePart> parts;
  parts.push_back({AddPart(command, arguments->files, "check",
                           "Check search spaces, and list everything that is wrong with them by "
                           "line and JSON pointer. Exits with 2 if anything is",
                           "  tuner space check space.json\n"
                           "  tuner space check search_spaces/catalog/*.json\n"
                           "  generate_space.py | tuner space check -\n"),
                   Check});
  parts.push_back({AddPart(command, arguments->file, "describe",
                           "Show a search space as a table, nested choices as a tree, with the "
                           "number of configurations",
                           "  tuner space describe space.json\n"),
                   DescribeSpace});
  AddSample(command, *arguments, parts);
  AddConvert(command, *arguments, parts);
  return [arguments, parts] {
    for (const SpacePart& part : parts) {
      if (!part.command->parsed()) continue;
      const absl::StatusOr<ExitCode> code = part.action(*arguments);
      return code.ok() ? *code : Fail("space " + part.command->name(), code.status());
    }
    return ExitCode::kBadInput;
  };
}

}  // namespace espalier
