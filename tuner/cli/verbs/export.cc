// `tuner export`: writes a study's parameters, curves and slots as CSV or JSON.

#include "tuner/cli/views/export.h"

#include <memory>
#include <string>

#include "tuner/api/json.h"
#include "tuner/cli/connected_verb.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

struct ExportArguments {
  SourceArguments source;
  std::string study;
  std::string format = "csv";
  std::string out;  // empty: stdout
};

absl::Status Export(StudySource& source, const ExportArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, source.GetStudy(arguments.study));
  return WriteOut(arguments.out,
                  arguments.format == "json" ? MessageToJson(details) + "\n" : ExportCsv(details));
}

}  // namespace

VerbAction AddExport(CliCommand& command) {
  auto a = std::make_shared<ExportArguments>();
  AddStudyName(command, a->study);
  a->source.AddTo(command);
  command
      .AddOption("--format", a->format,
                 "csv: one row per trial and reported step, with its parameters, step, value, at_s "
                 "(seconds since the study's creation), global_batch_size, slots held at that "
                 "time, and the trial's final_value, started_s, ended_s, slot_seconds, restarts, "
                 "reason and, where nodes have prices, paid. json: everything, as StudyDetails in "
                 "tuner.proto, with the slots held over time and the decisions (a service sends "
                 "the newest 20,000; --db reads all)")
      .OneOf({"csv", "json"})
      .ShowDefault();
  command.AddOption("--out", a->out, "File to write (default: stdout)");
  return [a] {
    return WithSource("export", a->study, a->source,
                      [a](StudySource& source) { return Export(source, *a); });
  };
}

}  // namespace espalier
