// What one may do to a database file besides serving it: check, backup, restore, compact,
// set-aside, import-optuna, export-optuna.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "adapters/optuna/file/export.h"
#include "adapters/optuna/file/import.h"
#include "base/clock.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/text.h"
#include "tuner/server/access/service_credentials.h"
#include "tuner/storage/upkeep.h"

namespace espalier {
namespace {

struct DbArguments {
  std::string file;
  std::string to;
  std::vector<std::string> studies;
  std::vector<std::string> renames;
  std::string times = "auto";
  bool keep_tokens = false;
};

std::string Bytes(std::int64_t bytes) {
  constexpr double kMega = 1e6;
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / kMega);
}

absl::StatusOr<ExitCode> Check(const DbArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<Finding> findings, CheckDatabase(arguments.file));
  bool clean = true;
  for (const Finding& finding : findings) {
    clean = clean && finding.ok;
    const std::string found = absl::StrReplaceAll(finding.found, {{"\n", "\n                "}});
    std::printf("%-11s%-4s %s\n", finding.point.c_str(), finding.ok ? "ok" : "BAD", found.c_str());
  }
  if (clean) return ExitCode::kOk;
  std::fflush(stdout);
  std::fprintf(stderr,
               "tuner db check: %s is damaged; continue with an earlier backup: tuner db restore "
               "BACKUP %s, which keeps the damaged one\n",
               arguments.file.c_str(), arguments.file.c_str());
  return ExitCode::kFailed;
}

absl::StatusOr<ExitCode> BackUp(const DbArguments& arguments) {
  const std::string credentials = CredentialsFolderOf(arguments.to);
  // First, so that no copy without its credentials looks complete.
  ESPALIER_ASSIGN_OR_RETURN(const bool has_credentials,
                            BackUpCredentials(CredentialsFolderOf(arguments.file), credentials));
  const absl::StatusOr<std::int64_t> bytes = BackUpDatabase(arguments.file, arguments.to);
  if (!bytes.ok()) {
    std::error_code ignored;
    if (has_credentials) std::filesystem::remove_all(credentials, ignored);
    return bytes.status();
  }
  std::printf("%s: %s, checked\n", arguments.to.c_str(), Bytes(*bytes).c_str());
  if (has_credentials) {
    std::printf("%s: keys and tokens; keep them from others\n", credentials.c_str());
  }
  return ExitCode::kOk;
}

void PrintRestored(const DbArguments& arguments, const RestoredDatabase& restored) {
  std::printf("%s: %s of %s, checked\n", arguments.file.c_str(), Bytes(restored.bytes).c_str(),
              arguments.to.c_str());
  if (!restored.former.empty()) {
    std::printf("the database that was there: %s\n", restored.former.c_str());
  }
  std::printf(
      "ids go on behind all that were given; replicas that still run are ended when their agents "
      "connect, and trials go on from their checkpoints\n");
  if (arguments.keep_tokens) {
    std::printf("tokens are good as they were in the backup, also if they were revoked since\n");
  } else if (restored.tokens_revoked > 0) {
    std::printf(
        "%s revoked: the service makes its own join.token and administer.token anew when it "
        "starts; make those of users with tuner token create\n",
        Count(restored.tokens_revoked, "token").c_str());
  }
}

absl::StatusOr<ExitCode> Restore(const DbArguments& arguments) {
  RestoreOptions options{.now = Now(), .keep_tokens = arguments.keep_tokens};
  options.before_it_is_there = [&arguments] {
    return RestoreCredentials(CredentialsFolderOf(arguments.to),
                              CredentialsFolderOf(arguments.file), arguments.keep_tokens);
  };
  ESPALIER_ASSIGN_OR_RETURN(const RestoredDatabase restored,
                            RestoreDatabase(arguments.to, arguments.file, options));
  PrintRestored(arguments, restored);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Compact(const DbArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const CompactedSizes sizes, CompactDatabase(arguments.file));
  std::printf("%s: %s before, %s after\n", arguments.file.c_str(), Bytes(sizes.before).c_str(),
              Bytes(sizes.after).c_str());
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> SetAside(const DbArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<SetAsideStudy> studies,
                            SetAsideStudies(arguments.file, arguments.to));
  for (const SetAsideStudy& study : studies) {
    std::printf("study \"%s\", %s: now in %s\n  %s\n", study.name.c_str(),
                Count(study.trials, "trial").c_str(), arguments.to.c_str(), study.why.c_str());
  }
  if (studies.empty()) {
    std::printf("all studies of %s load: nothing to set aside, no file was made\n",
                arguments.file.c_str());
  }
  return ExitCode::kOk;
}

absl::StatusOr<OptunaImportOptions> ImportOptions(const DbArguments& arguments) {
  OptunaImportOptions options;
  options.studies = arguments.studies;
  for (const std::string& rename : arguments.renames) {
    const std::size_t equals = rename.find('=');
    if (equals == std::string::npos || equals + 1 == rename.size()) {
      return absl::InvalidArgumentError("--rename \"" + rename + "\": must be OLD=NEW");
    }
    const bool added =
        options.names.emplace(rename.substr(0, equals), rename.substr(equals + 1)).second;
    if (!added) {
      return absl::InvalidArgumentError("--rename \"" + rename +
                                        "\": this study is renamed already by another --rename");
    }
  }
  if (arguments.times == "utc") options.times = OptunaTimes::kUtc;
  if (arguments.times == "local") options.times = OptunaTimes::kLocal;
  return options;
}

absl::StatusOr<ExitCode> ImportFromOptuna(const DbArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const OptunaImportOptions options, ImportOptions(arguments));
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<ImportedStudy> studies,
                            ImportOptuna(arguments.file, arguments.to, options, Now()));
  for (const ImportedStudy& study : studies) {
    std::printf("study \"%s\"%s: %s\n", study.name.c_str(),
                study.name == study.name_in_file
                    ? ""
                    : fmt::format(" (\"{}\" in the file)", study.name_in_file).c_str(),
                Count(study.trials, "trial").c_str());
    if (study.renumbered > 0) {
      std::printf("  its trial numbers had gaps: %s got new numbers\n",
                  Count(study.renumbered, "trial").c_str());
    }
  }
  if (studies.empty()) std::printf("%s holds no study\n", arguments.file.c_str());
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ExportToOptuna(const DbArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<ExportedStudy> studies,
                            ExportOptuna(arguments.file, arguments.to, arguments.studies));
  for (const ExportedStudy& study : studies) {
    std::printf("study \"%s\": %s\n", study.name.c_str(), Count(study.trials, "trial").c_str());
    if (study.nan_values > 0) {
      std::printf(
          "  final values that are NaN were left out, as Optuna's files have no place for "
          "them: of %s\n",
          Count(study.nan_values, "trial").c_str());
    }
    if (study.without_value > 0) {
      std::printf("  completed without a value, and FAIL in Optuna's file: %s\n",
                  Count(study.without_value, "trial").c_str());
    }
  }
  std::printf("open it with: optuna.load_study(storage=\"sqlite:///%s\", study_name=...)\n",
              arguments.to.c_str());
  return ExitCode::kOk;
}

using DbPart = VerbPart<DbArguments>;

ExitCode Run(const DbPart& part, const DbArguments& arguments) {
  const std::string verb = "db " + part.command->name();
  const absl::StatusOr<ExitCode> code = part.action(arguments);
  if (code.ok()) return *code;
  // A damaged file is bad input, which nothing was done with.
  if (absl::IsDataLoss(code.status())) {
    return Fail(verb, ExitCode::kBadInput, std::string(code.status().message()));
  }
  return Fail(verb, code.status());
}

CliCommand* AddPart(CliCommand& command, const char* name, const char* purpose,
                    const char* example) {
  CliCommand* part = command.AddCommand(name, purpose);
  part->Footer(std::string("Example:\n  tuner db ") + example + "\n");
  return part;
}

void AddFile(CliCommand& part, DbArguments& arguments, const char* help) {
  part.AddOption("file", arguments.file, help).Required().TypeName("FILE");
}

void AddTo(CliCommand& part, DbArguments& arguments, const char* help) {
  part.AddOption("to", arguments.to, help).Required().TypeName("TO");
}

void AddStudies(CliCommand& part, DbArguments& arguments) {
  part.AddOption("--study", arguments.studies,
                 "Only this study; may be given several times (default: all)")
      .TypeName("NAME")
      .Repeated();
}

CliCommand* AddDbCheck(CliCommand& command, DbArguments& a) {
  CliCommand* part =
      AddPart(command, "check",
              "Check a database: structure, schema, references, numbering, contents. Writes "
              "nothing; a service may have it open. Exits with 1 if anything is wrong",
              "check espalier.db");
  AddFile(*part, a, "Database of a service");
  return part;
}

CliCommand* AddDbBackup(CliCommand& command, DbArguments& a) {
  CliCommand* part = AddPart(command, "backup",
                             "Copy a database, even while a service writes to it, and its "
                             "credentials to TO.credentials. The copy is checked, and appears only "
                             "once it is complete",
                             "backup espalier.db espalier-monday.db");
  AddFile(*part, a, "Database of a service");
  AddTo(*part, a, "The copy; no such file may exist");
  return part;
}

CliCommand* AddDbRestore(CliCommand& command, DbArguments& a) {
  CliCommand* part =
      AddPart(command, "restore",
              "Put a backup in the place of a database, which is kept as FILE.replaced. Ids go on "
              "behind all that were given since, replicas that still run are ended, and all tokens "
              "are revoked. No service may have the file open",
              "restore espalier-monday.db espalier.db");
  part->AddOption("backup", a.to, "What tuner db backup made; it is only read")
      .Required()
      .TypeName("BACKUP");
  AddFile(*part, a, "Database to be restored");
  part->AddFlag("--keep-tokens", a.keep_tokens,
                "Leave the tokens as they were in the backup: those that were revoked since are "
                "good again");
  return part;
}

CliCommand* AddDbCompact(CliCommand& command, DbArguments& a) {
  CliCommand* part = AddPart(command, "compact",
                             "Return the space of deleted studies to the disk, and empty the "
                             "write-ahead log. No service may have the file open",
                             "compact espalier.db");
  AddFile(*part, a, "Database of a service");
  return part;
}

CliCommand* AddDbSetAside(CliCommand& command, DbArguments& a) {
  CliCommand* part = AddPart(
      command, "set-aside",
      "Move studies whose records cannot be loaded, which keeps a service from starting, unchanged "
      "to a database of their own; the others stay and load. No service may have the file open",
      "set-aside espalier.db damaged.db");
  AddFile(*part, a, "Database of a service");
  AddTo(*part, a, "Database to move them to; no such file may exist");
  return part;
}

CliCommand* AddDbImport(CliCommand& command, DbArguments& a) {
  CliCommand* part =
      AddPart(command, "import-optuna",
              "Copy studies from a file of Optuna's RDBStorage (sqlite:///FILE, "
              "Optuna 3.2 to 5.0) into a database, all or none. No service may have "
              "the database open",
              "import-optuna example.db espalier.db --study mine --rename mine=ours");
  AddFile(*part, a, "Optuna's SQLite file; it is only read");
  AddTo(*part, a, "Database of a service; created if it does not exist");
  AddStudies(*part, a);
  part->AddOption("--rename", a.renames, "Rename a study; may be given several times")
      .TypeName("OLD=NEW")
      .Repeated();
  part->AddOption("--times", a.times,
                  "Time zone of the file's datetimes: utc, as Optuna 5 writes them; local, as "
                  "Optuna 4 does; auto: by the version that made the file")
      .OneOf({"auto", "utc", "local"})
      .ShowDefault();
  return part;
}

CliCommand* AddDbExport(CliCommand& command, DbArguments& a) {
  CliCommand* part = AddPart(command, "export-optuna",
                             "Write studies as a file that Optuna 5 opens with sqlite:///TO. A "
                             "service may have the database open",
                             "export-optuna espalier.db optuna.db --study mine");
  AddFile(*part, a, "Database of a service");
  AddTo(*part, a, "Optuna's file; no such file may exist");
  AddStudies(*part, a);
  return part;
}

}  // namespace

VerbAction AddDb(CliCommand& command) {
  auto a = std::make_shared<DbArguments>();
  command.RequireCommand();
  return [a, parts = std::vector<DbPart>{{AddDbCheck(command, *a), Check},
                                         {AddDbBackup(command, *a), BackUp},
                                         {AddDbRestore(command, *a), Restore},
                                         {AddDbCompact(command, *a), Compact},
                                         {AddDbSetAside(command, *a), SetAside},
                                         {AddDbImport(command, *a), ImportFromOptuna},
                                         {AddDbExport(command, *a), ExportToOptuna}}] {
    for (const DbPart& part : parts) {
      if (part.command->parsed()) return Run(part, *a);
    }
    return ExitCode::kBadInput;
  };
}

}  // namespace espalier
