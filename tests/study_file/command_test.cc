#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/storage/scratch_folder.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CheckCommandTest : public testing::Test {
 protected:
  CheckCommandTest() { spec_.directory = folder_.path(); }

  void Program(const std::string& name, bool executable = true) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(name)).parent_path());
    std::ofstream(folder_.File(name)) << "#!/bin/sh\n";
    std::filesystem::permissions(folder_.File(name),
                                 std::filesystem::perms(executable ? 0755 : 0644));
  }

  absl::Status Check(const std::string& name) {
    spec_.command = {name, "argument"};
    return CheckCommand(spec_);
  }
  std::string Refusal(const std::string& name) {
    const absl::Status status = Check(name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  ScratchFolder folder_;
  StudySpec spec_;
};

TEST_F(CheckCommandTest, FindsAProgramInPath) { EXPECT_TRUE(Check("sh").ok()); }

TEST_F(CheckCommandTest, TakesThePathOfTheStudysEnvironment) {
  Program("bin/train");
  EXPECT_FALSE(Check("train").ok());
  spec_.environment["PATH"] = "bin:/usr/bin";
  EXPECT_TRUE(Check("train").ok());
}

TEST_F(CheckCommandTest, NeededFilesAreThereOrNamedWithTheirRemedy) {
  Program("data");
  spec_.needs = {{folder_.File("data"), "make it"}};
  EXPECT_TRUE(CheckNeeds(spec_).ok());
  spec_.needs = {{folder_.File("other"), "apt-get install other"}};
  EXPECT_THAT(std::string(CheckNeeds(spec_).message()),
              AllOf(HasSubstr(folder_.File("other")), HasSubstr("apt-get install other")));
}

TEST_F(CheckCommandTest, TheScriptOfAnInterpreterIsThere) {
  Program("train.py", /*executable=*/false);
  Program("lib/train");
  Program("bin/tool.sh");
  spec_.environment["PATH"] = "bin:interpreters:/bin:/usr/bin";
  for (const char* name : {"python3", "python3.11", "torchrun", "bash", "perl"}) {
    Program(std::string("interpreters/") + name);
  }
  using Words = std::vector<std::string>;
  const auto check = [this](const Words& words) {
    spec_.command = words;
    return CheckCommand(spec_);
  };
  Program("{a}.py");
  for (const Words& good : {Words{"python3", "train.py"},
                            {"python3", "{script}.py"},  // another one in each trial
                            {"python3", "{{a}}.py"},
                            {"interpreters/python3.11", "-u", "-W", "no.py", "train.py", "no.py"},
                            {"python3", folder_.File("train.py")},
                            {"python3", "lib"},
                            {"python3", "-m", "no.such"},
                            {"python3", "-uc", "import no.such"},
                            {"python3", "-"},
                            {"bash", "-ec", "./no.sh"},
                            {"bash", "-o", "pipefail", "lib/train", "no.txt"},
                            {"bash", "tool.sh"},
                            {"perl", "-I", "./no", "train.py"},
                            {"torchrun", "--nproc-per-node", "2", "train.py", "no.py"},
                            {"torchrun", "--rdzv-endpoint", "oak:29.5", "train.py"},
                            {"torchrun", "--module", "no.such"},
                            {"sh", "no"},
                            {"env", "no.py"}}) {
    EXPECT_TRUE(check(good).ok()) << check(good);
  }
  for (const Words& bad : {Words{"python3", "no.py"},
                           {"interpreters/python3.11", "-u", "-W", "ignore", "no.py"},
                           {"python3", "sub/no"},
                           {"python3", "{{no}}.py"},
                           {"bash", "-e", "-o", "pipefail", "no.py"},
                           {"perl", "-I", "lib", "no.py"},
                           {"torchrun", "--standalone", "no.py"},
                           {"torchrun", "--nproc-per-node=2", "no.py", "train.py"},
                           {"torchrun", "--nproc-per-node", "2", "no.py"}}) {
    EXPECT_THAT(std::string(check(bad).message()),
                AllOf(HasSubstr(" is to run \""), HasSubstr("no file " + folder_.path())));
  }
}

TEST_F(CheckCommandTest, TakesPathsFromTheTrialsFolder) {
  Program("train");
  EXPECT_TRUE(Check("./train").ok());
  EXPECT_TRUE(Check(folder_.File("train")).ok());
}

TEST_F(CheckCommandTest, SaysWhereAMissingProgramWasLookedFor) {
  EXPECT_THAT(Refusal("no-such-program"),
              AllOf(HasSubstr("\"no-such-program\""), HasSubstr("PATH")));
  EXPECT_THAT(Refusal("./no-such-program"), HasSubstr("does not exist"));
}

TEST_F(CheckCommandTest, ProposesThePathOfAProgramInTheFolder) {
  Program("train-here");
  EXPECT_THAT(Refusal("train-here"), HasSubstr("\"./train-here\""));
}

TEST_F(CheckCommandTest, RefusesWhatIsNoProgram) {
  Program("train", false);
  EXPECT_THAT(Refusal("./train"), HasSubstr("chmod +x"));
  EXPECT_THAT(Refusal("/"), HasSubstr("is a folder"));
}

TEST_F(CheckCommandTest, RefusesAScriptThatTheSystemCannotStart) {
  const auto refusal = [&](const std::string& text) {
    Program("script");
    std::ofstream(folder_.File("script")) << text;
    return Refusal("./script");
  };
  EXPECT_THAT(refusal("#! /absent/python3 -u\nprint(1)\n"),
              HasSubstr(folder_.File("script") + " names \"/absent/python3\", which is not there"));
  EXPECT_THAT(refusal("#!/bin/sh\r\necho 1\r\n"),
              AllOf(HasSubstr("\"/bin/sh\\r\""), HasSubstr("without \\r")));
  EXPECT_THAT(refusal("echo loss=1\n"), HasSubstr("a first line such as #!/bin/sh"));
  EXPECT_THAT(refusal(""), HasSubstr("a first line such as #!/bin/sh"));
}

TEST_F(CheckCommandTest, TakesScriptsAndPrograms) {
  for (const std::string& text :
       {std::string("#!/bin/sh"), std::string("#! \t/usr/bin/env python3\n"), std::string("#!\n"),
        std::string("\x7f"
                    "ELF\2\1\1\0\0",
                    9)}) {
    Program("program");
    std::ofstream(folder_.File("program")) << text;
    EXPECT_TRUE(Check("./program").ok()) << text;
  }
}

TEST_F(CheckCommandTest, RefusesAMissingDirectory) {
  spec_.directory = folder_.File("absent");
  EXPECT_THAT(Refusal("sh"), HasSubstr("absent"));
}

}  // namespace
}  // namespace espalier
