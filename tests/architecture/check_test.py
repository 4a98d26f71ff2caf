#!/usr/bin/env python3
"""Plants one violation of each rule in a small tree and expects check.py to name it, and it alone."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import check
import figures
import history
import rules

# Exceptions of the tree are none of the small ones that are planted here.
rules.LONGER, rules.LONGER_CLASSES, rules.LONGER_FUNCTIONS, rules.POSITIONAL = {}, {}, {}, {}
rules.MIRRORS_NONE = {}

BUILT = {"CMakeLists.txt": "a.cc b.cc c.cc a_test.cc check_test.py",
         check.PAGE: check.page_table(),
         # What folders of tests mirror.
         "tuner/core/README.md": "", "tuner/cli/README.md": ""}
ONCE = "#pragma once\n"


def found_in(files):
    """The violations in a tree of these files, {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**BUILT, **files}.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check.violations(root)[1]


class CheckTest(unittest.TestCase):

    def expect_clean(self, files):
        self.assertEqual(found_in(files), [])

    def expect_one(self, files, *parts):
        """One violation, and its line has all these parts."""
        found = found_in(files)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_tree_in_order_is_clean(self):
        self.expect_clean({
            "base/ids.h": ONCE + "#include <string>\n",
            "tuner/core/a.h": ONCE + '#include "base/ids.h"\n',
            "tuner/core/a.cc": '#include "tuner/core/a.h"\n#include "absl/strings/str_cat.h"\n',
            "tuner/storage/a.cc": '#include <sqlite3.h>\n#include "tuner/core/a.h"\n',
            "tests/core/a_test.cc": '#include <gtest/gtest.h>\n#include "tuner/core/a.h"\n',
        })

    def test_texts_of_others_as_markup_of_a_page(self):
        for name, line in (("a.tsx", "<p dangerouslySetInnerHTML={{__html: name}} />"), ("a.ts", "element.innerHTML = name;"),
                           ("a.ts", "element.insertAdjacentHTML('beforeend', name);"), ("a.ts", "eval(name);"),
                           ("a.ts", "new Function(name)();")):
            self.expect_one({f"tuner/web/page/{name}": line + "\n"}, f"tuner/web/page/{name}:1", "never markup or code")
        self.expect_clean({"tuner/web/page/a.ts": "element.textContent = name;\n"})

    def test_folder_edge_that_no_row_allows(self):
        self.expect_one({"tuner/server/a.h": ONCE,
                         "tuner/core/a.cc": '// why\n#include "tuner/server/a.h"\n'},
                        "tuner/core/a.cc:2:", "tuner/core may not include")

    def test_subfolder_with_its_own_row_does_not_inherit(self):
        self.expect_one({"allocator/policies/a.h": ONCE,
                         "allocator/goodput/a.cc": '#include "allocator/policies/a.h"\n'},
                        "allocator/goodput may not include")

    def test_folder_without_a_row(self):
        self.expect_one({"attic/a.cc": "int x;\n"}, "attic/a.cc", "no row")

    def test_include_that_is_not_from_the_root(self):
        self.expect_one({"tuner/core/a.h": ONCE, "tuner/core/a.cc": '#include "a.h"\n'},
                        "tuner/core/a.cc:1:", 'no "a.h"')

    def test_source_that_is_included(self):
        self.expect_one({"tuner/core/b.cc": "\n", "tuner/core/a.cc": '#include "tuner/core/b.cc"\n'},
                        "includes a source")

    def test_pure_folders_see_no_third_party(self):
        for folder in rules.PURE:
            for include in ("google/protobuf/message.h", "tuner.pb.h", "sqlite3.h", "httplib.h",
                            "ATen/ATen.h", "spdlog/spdlog.h"):
                with self.subTest(folder=folder, include=include):
                    self.expect_one({f"{folder}/a.cc": f"#include <{include}>\n"},
                                    f"{folder}/a.cc:1:", "stays behind its wall")

    def test_json_in_core(self):
        self.expect_one({"tuner/core/a.cc": "#include <nlohmann/json.hpp>\n"}, "json")

    def test_grpc_in_pure_code(self):
        self.expect_one({"allocator/a.cc": "#include <grpcpp/grpcpp.h>\n"}, "grpc")

    def test_wall_that_is_open_to_a_folder_stays_closed_to_its_subfolders(self):
        self.expect_clean({"tuner/cli/a.cc": "#include <grpcpp/grpcpp.h>\n"})
        self.expect_one({"tuner/cli/views/a.cc": "#include <grpcpp/grpcpp.h>\n"}, "grpc")

    def test_tests_see_what_the_folder_they_mirror_sees(self):
        proto = '#include "tuner.pb.h"\n'
        self.expect_clean({"tests/cli/a.h": ONCE + proto, "tests/cli/a_test.cc": proto})
        self.expect_one({"tests/core/a_test.cc": proto}, "protobuf")

    def test_http_in_a_header_even_where_sources_may(self):
        self.expect_one({"tuner/server/a.h": ONCE + "#include <httplib.h>\n"},
                        "http", "headers of adapters/optuna/dashboard/listener.h")

    def test_third_party_that_a_header_carries_out_of_its_folder(self):
        self.expect_one({"tuner/storage/a.h": ONCE + "#include <sqlite3.h>\n",
                         "tuner/storage/a.cc": '#include "tuner/storage/a.h"\n',
                         "tuner/server/a.cc": '#include "tuner/storage/a.h"\n'},
                        "tuner/server/a.cc", "sqlite reaches it over", "tuner/storage/a.h")

    def test_torch_and_protobuf_in_one_source_over_a_header(self):
        found = found_in({"trial_runner/control/a.h": ONCE + '#include "control.pb.h"\n',
                          "trial_runner/torch/a.cc": "#include <ATen/ATen.h>\n"
                                                     '#include "trial_runner/control/a.h"\n'})
        self.assertTrue(any("sees both torch and protobuf" in line for line in found), found)

    def test_calls_that_are_banned_everywhere(self):
        for call in ("std::rand();", "srand(1);", "system(text);", "std::system(text);",
                     "std::shuffle(a, b, c);", "assert(x > 0);", "using namespace std;",
                     "std::uniform_int_distribution<int> d;"):
            with self.subTest(call=call):
                self.expect_one({"tuner/server/a.cc": f"int x;\n{call}\n"},
                                "tuner/server/a.cc:2: no ")

    def test_calls_that_pure_code_does_not_make(self):
        for call in ("std::random_device d;", "std::mt19937_64 engine;", "const Time t = Now();",
                     "std::chrono::steady_clock::now();", "#include <thread>",
                     "#include <fstream>", "throw 1;"):
            for folder in ("tuner/core/samplers", "allocator/goodput", "trial_runner/elastic"):
                with self.subTest(call=call, folder=folder):
                    self.expect_one({f"{folder}/a.cc": call + "\n"}, f"{folder}/a.cc:1: no ")

    def test_calls_that_only_look_banned(self):
        self.expect_clean({"tuner/core/a.cc":
                           "// throw, std::rand() and Now() in a comment\n"
                           'const char* text = "system(std::rand())";\n'
                           "const char* raw = R\"x(\"assert(1) \" throw)x\";\n"
                           "const int big = 1'000'000;\n"
                           "static_assert(sizeof(int) == 4);\n"
                           "auto t = clock.Now(); auto s = file.system(); Operand(); brand();\n"})

    def test_call_behind_a_digit_separator_is_still_seen(self):
        self.expect_one({"tuner/core/a.cc": "const int a = 1'000; throw 1; const int b = 2'000;\n"},
                        "no throw")

    def test_sleep_in_a_test(self):
        sleep = "std::this_thread::sleep_for(pause);\n"
        self.expect_one({"tests/core/a_test.cc": sleep}, "no sleep_for")
        with mock.patch.object(rules, "MIRRORS_NONE", {"tests/e2e": "why"}):
            self.expect_clean({"tests/e2e/a_test.cc": sleep, "tuner/server/a.cc": sleep})

    def test_skipped_and_disabled_tests(self):
        for text in ("GTEST_SKIP();", "TEST(Core, DISABLED_Steps) {}"):
            with self.subTest(text=text):
                self.expect_one({"tests/core/a_test.cc": text + "\n"}, "a test that runs")

    def test_empty_names(self):
        for name in ("tuner/core/string_utils.h", "tuner/common/a.h", "trial_runner/misc.h"):
            with self.subTest(name=name):
                found = found_in({name: ONCE})
                self.assertTrue(any("says nothing" in line for line in found), found)

    def test_length(self):
        line = "int x;\n"
        self.expect_clean({"tuner/core/a.cc": line * rules.MAX_LINES})
        self.expect_one({"tuner/core/a.cc": line * (rules.MAX_LINES + 1)}, "601 lines")

    def test_length_ratchet_only_turns_one_way(self):
        files = {"tuner/core/a.cc": "int x;\n" * 650}
        with mock.patch.object(rules, "LONGER", {"tuner/core/a.cc": 650}):
            self.expect_clean(files)
        with mock.patch.object(rules, "LONGER", {"tuner/core/a.cc": 649}):
            self.expect_one(files, "more than 649")
        with mock.patch.object(rules, "LONGER", {"tuner/core/a.cc": 700}):
            self.expect_one(files, "lower its row from 700")

    def test_type_that_is_defined_twice(self):
        step = "namespace espalier {\nstruct Step {\n  int n = 0;\n};\n}\n"
        self.expect_one({"tuner/core/a.h": ONCE + step, "allocator/b.h": ONCE + step},
                        "tuner/core/a.h:3:", "espalier::Step is defined in allocator/b.h:3 too")

    def test_types_whose_names_only_look_alike(self):
        self.expect_clean({
            "tuner/core/a.h": ONCE + "namespace espalier {\nclass Step;\nstruct Walk {\n  struct Step {};\n};\n"
                              "enum class Kind { kStep };\n}\n",
            "tuner/core/a.cc": '#include "tuner/core/a.h"\nnamespace espalier {\nnamespace {\nstruct Own {};\n}\n'
                               "class Step final : public Walk {};\nvoid F() {\n  struct Here {};\n}\n}\n",
            "allocator/a.cc": "namespace espalier {\nnamespace {\nclass Own {};\n}\nvoid G() {\n  struct Here {};\n}\n"
                              "// struct Step {};\nstd::vector<struct Step> H();\n}\n",
            "tests/core/a_test.cc": "namespace espalier {\nstruct Step {};\n}\n",
        })

    @mock.patch.object(rules, "MAX_FUNCTION_LINES", 1000)
    def test_lines_of_a_class_are_counted_over_its_files(self):
        body = "  ++n_;\n" * 250
        header = ONCE + "namespace espalier {\nclass Core {\n  struct Impl;\n  int n_ = 0;\n};\n}\n"
        member = "std::map<int, int> Core::Step(const A::B& b) {\n" + body + "}\n"
        built = "Core::Core(int n) : n_(n), m_{n} {\n" + body + "}\n"
        files = {"tuner/core/a.h": header}
        for name, text in {"a.cc": member, "b.cc": member, "c.cc": built + "int F() {\n" + body + "}\n"}.items():
            files[f"tuner/core/{name}"] = f'#include "tuner/core/a.h"\nnamespace espalier {{\n{text}}}\n'
        with mock.patch.object(rules, "MAX_CLASS_LINES", 760):
            self.expect_clean(files)
        with mock.patch.object(rules, "MAX_CLASS_LINES", 759):
            self.expect_one(files, "tuner/core/a.h:3:", "espalier::Core: 760 lines, more than 759")

    def test_class_ratchet_only_turns_one_way(self):
        files = {"tuner/core/a.h": ONCE + "class A {\n" + "  int n;\n" * 8 + "};\n"}
        with mock.patch.object(rules, "MAX_CLASS_LINES", 5):
            with mock.patch.object(rules, "LONGER_CLASSES", {"A": 10}):
                self.expect_clean(files)
            with mock.patch.object(rules, "LONGER_CLASSES", {"A": 9}):
                self.expect_one(files, "10 lines, more than 9")
            with mock.patch.object(rules, "LONGER_CLASSES", {"A": 12}):
                self.expect_one(files, "lower its row from 12")
            with mock.patch.object(rules, "LONGER_CLASSES", {"A": 10, "B": 9}):
                self.expect_one(files, "rules.LONGER_CLASSES: B keeps to the rule now")

    def test_lines_of_a_function(self):
        long = "  F();\n" * 8 + "}\n"
        with mock.patch.object(rules, "MAX_FUNCTION_LINES", 9):
            self.expect_clean({"tuner/core/a.cc": 'namespace a {\nextern "C" {\nvoid F() {\n}\n' + "void G();\n" * 9 +
                               "}\nstruct B {\n" + "  int n;\n" * 9 + "};\nvoid H() {\n" + long[7:] + "}\n"})
            for head, name in (("void F(int a,\n       int b) {\n", "F"), ("A::A(int b) : b_{b}, c_{1} {\n", "A::A"),
                               ("TEST(Tree, Is) {\n", "TEST(Tree, Is)"), ("bool A::operator()(int) {\n", "A::operator()")):
                self.expect_one({"tuner/core/a.cc": "int b() { return 1; }\n// why\n" + head + long},
                                f"tuner/core/a.cc:3: {name} has {head.count(chr(10)) + 9} lines, more than 9")
            self.expect_one({"tests/core/a_test.cc": "void F() {\n" + long}, "F has 10 lines")
            with mock.patch.object(rules, "LONGER_FUNCTIONS", {"tuner/core/a.cc A::F": "a table"}):
                self.expect_clean({"tuner/core/a.cc": "void A::F() {\n" + long})
                self.expect_one({"tuner/core/a.cc": "void A::F() {\n}\n"}, "short enough")

    def test_plugin_that_a_third_file_names(self):
        for kind, table in rules.PLUGIN_TABLES.items():
            files = {"CMakeLists.txt": f"{BUILT['CMakeLists.txt']} {Path(table).name}",
                     table: "Row EldestRow();\nTable table{those::EldestRow()};\n",
                     "tuner/core/a.cc": "Row EldestRow() {\n}\n", "tests/core/a_test.cc": "EldestRow();\n"}
            self.expect_clean(files)
            self.expect_one(files | {"tuner/core/b.cc": "EldestRow();\n"},
                            f"{kind} EldestRow: 3 files of production code name it, more than 2", "tuner/core/b.cc")

    def test_figure_that_a_fourth_file_names(self):
        files = {rules.FIGURES["file"]: ONCE + "enum class Figure { kLoss };\n",
                 "tuner/core/a.cc": "Tell(Figure::kLoss);\n", "tuner/core/b.cc": "Tell(Figure::kLoss);\n"}
        self.expect_clean(files)
        self.expect_one(files | {"tuner/core/c.cc": "Tell(Figure::kLoss);\n"}, "figure kLoss: 4 files", "more than 3")

    def test_words_of_the_first_page(self):
        self.expect_clean({"README.md": "word " * rules.MAX_README_WORDS})
        self.expect_one({"README.md": "word " * (rules.MAX_README_WORDS + 1)}, "README.md: 1001 words, more than 1000")

    def test_many_values_without_names(self):
        five = "struct Five {\n  int a = 0, b, c;\n  std::string d;\n  bool e = false;\n};\n"
        for use in ("Five x{1, 2, 3, Name(), true};", 'Emit(Five{1, 2, 3, "d", true});',
                    "Five F() { return {1, n, 3, {}, true}; }", "rows.push_back({1, n, f(a, b), {}, true});",
                    'const Five x = {1, 2, 3, "d", true};', "five_ = {1, n, 3, {}, true};", "Set({key, {1, n, 3, {}, [] { ; }}});",
                    'const Five kAll[] = {{1, 2, 3, "d", true}};'):
            with self.subTest(use=use):
                self.expect_one({"tuner/core/a.cc": five + use + "\n"}, "tuner/core/a.cc:6:",
                                "5 values without names")

    def test_lists_that_are_no_aggregates(self):
        self.expect_clean({"tuner/core/a.cc":
                           "struct Five {\n  int a, b, c, d, e;\n};\nenum class Kind { kA, kB, kC, kD, kE };\n"
                           "Five x{.a = 1, .b = 2, .c = 3, .d = 4, .e = 5};\n"
                           "std::vector<int> numbers = {1, n, 3, f(4), 5};\n"
                           "const double kAll[] = {1, x, 3, 4, 5};\n"
                           'names.Set({"a", "b", "c", "d", "e"});\n'
                           "for (const Kind kind : {Kind::kA, Kind::kB, own, Kind::kD, Kind::kE}) Take(kind);\n"
                           "auto four = std::map<Kind, int>{{Kind::kA, 1}, {Kind::kB, n}};\n"
                           "void F(int a, int b) { Take(a, b, 3, 4, 5); }\n"})

    def test_ratchet_of_values_without_names(self):
        files = {"tuner/core/a.cc": "struct A { int a, b, c, d, e; };\nA x{1, n, 3, 4, 5};\nA y{1, n, 3, 4, 5};\n"}
        with mock.patch.object(rules, "POSITIONAL", {"tuner/core/a.cc": 2}):
            self.expect_clean(files)
        with mock.patch.object(rules, "POSITIONAL", {"tuner/core/a.cc": 3}):
            self.expect_one(files, "lower its row from 3")
        with mock.patch.object(rules, "POSITIONAL", {"tuner/core/a.cc": 2, "tuner/core/b.cc": 1}):
            self.expect_one(files, "tuner/core/b.cc keeps to the rule now")

    def test_generated_header_is_of_the_folder_of_its_proto(self):
        proto = {"tuner/proto/tuner.proto": "", "tuner/cli/a.cc": '#include "tuner.pb.h"\n'}
        self.expect_clean(proto)
        self.expect_one({**proto, "trial_runner/control/a.cc": '#include "tuner.pb.h"\n'},
                        "trial_runner/control may not include \"tuner.pb.h\"")

    def test_field_that_nothing_names(self):
        message = ("message Trial {\n  reserved 4;\n  string name = 1;  // int64 was = 9;\n  repeated int64 steps = 2;\n"
                   "  oneof kind {\n    Trial of_kind = 3;\n  }\n  optional bool held = 5 [deprecated = true];\n}\n")
        used = "// trial.held()\nswitch (trial.kind_case()) {\n  case v1::Trial::kOfKind:\n    trial.add_steps(trial.name());\n}\n"
        files = {"tuner/proto/tuner.proto": message, "tuner/api/a.cc": used}
        self.expect_one(files, "tuner/proto/tuner.proto:8:", "sets or reads held")
        self.expect_one(files | {"tests/api/a_test.cc": "trial.set_held(true);\n"}, "sets or reads held")
        self.expect_clean(files | {"tuner/api/b.cc": 'Find("held");\n'})

    def test_header_that_is_not_guarded(self):
        self.expect_one({"tuner/core/a.h": "int F();\n"}, "no #pragma once")

    def test_folder_of_tests_that_mirrors_none(self):
        tests = {"tests/attic/a_test.cc": "\n", "tests/core/data/a.txt": "", "tuner/core/data/b.txt": "",
                 "tests/python/ray/a.txt": "", "python/espalier/ray/b.txt": ""}
        self.expect_one(tests, "tests/attic:", "mirrors no folder of the tree")
        with mock.patch.object(rules, "MIRRORS_NONE", {"tests/attic": "why"}):
            self.expect_clean(tests)
            self.expect_one({**tests, "tuner/attic/b.txt": ""}, "rules.MIRRORS_NONE: tests/attic mirrors a folder")
        with mock.patch.object(rules, "MIRRORS_NONE", {"tests/attic": "why", "tests/cellar": "why"}):
            self.expect_one(tests, "rules.MIRRORS_NONE: tests/cellar is not there")
        self.expect_one({"tests/tuner/core/a_test.cc": "\n"}, "tests/tuner/core: mirrors no folder")

    def test_source_that_nothing_builds(self):
        self.expect_one({"tuner/core/d.cc": "int x;\n"}, "tuner/core/d.cc", "nothing builds")

    def test_longer_name_that_ends_alike_does_not_count_as_built(self):
        self.expect_one({"tuner/core/test.cc": "int x;\n"}, "nothing builds")

    def test_page_that_lets_a_folder_see_more_than_the_rules(self):
        more = check.page_table().replace(check.page_cell("tuner/server"),
                                          check.page_cell("tuner/server") + ", adapters/nni")
        self.expect_one({check.PAGE: more}, check.PAGE, "| `tuner/server` |",
                        "as rules.FOLDERS has it: " + check.page_cell("tuner/server"))

    def test_page_without_a_row_and_with_one_too_many(self):
        table = check.page_table()
        row = next(line for line in table.splitlines() if line.startswith("| `tuner/core` |"))
        self.expect_one({check.PAGE: table.replace(row + "\n", "")}, "no row for `tuner/core`")
        self.expect_one({check.PAGE: table + "| `tuner/attic` | old things | base |\n"},
                        "`tuner/attic` has no row in rules.FOLDERS")
        self.expect_one({check.PAGE: table + row + "\n"}, "`tuner/core` has two rows")

    def test_tree_without_the_page(self):
        self.expect_one({check.PAGE: ""}, "no row for", "and none for the other")

    def test_tables_with_a_circle(self):
        folders = {**rules.FOLDERS, "base": ["tuner/core"]}
        with mock.patch.object(rules, "FOLDERS", folders):
            self.assertTrue(any("circle" in line for line in check.check_tables()))

    def test_tables_that_bring_http_to_torch(self):
        folders = {**rules.FOLDERS,
                   "trial_runner/torch": rules.FOLDERS["trial_runner/torch"] + ["tuner/server"]}
        with mock.patch.object(rules, "FOLDERS", folders):
            found = list(check.check_tables())
        self.assertTrue(any("links torch, and http" in line for line in found), found)

    def test_loops(self):
        there = {"tuner/core/groups/a.h": ONCE + '#include "tuner/core/trials/a.h"\n'}
        self.expect_clean(there | {"tuner/core/trials/a.h": ONCE})
        back = {"tuner/core/trials/a.h": ONCE,
                "tuner/core/trials/b.h": ONCE + '#include "tuner/core/groups/a.h"\n'}
        self.expect_one(there | back, "lead back to it")

    def test_circles_of_python(self):
        low = {"python/espalier/low.py": "import os\nimport espalier.torch\n", "python/espalier/__init__.py": "",
               "python/espalier/torch/__init__.py": "from espalier.torch.data import size\n",
               "python/espalier/torch/data.py": "import json\nimport data\nsize = 1\n"}
        self.expect_clean(low)
        for back in ("from espalier import low\n", "import espalier.low as below\n", "from .. import low\n",
                     "from ..low import os\n", "def size() -> None:\n    from espalier.low import os\n",
                     "import typing\nif typing.TYPE_CHECKING:\n    from espalier import low\n",
                     "import importlib\nlow = importlib.import_module('espalier.low')\n"):
            with self.subTest(back=back):
                self.expect_one(low | {"python/espalier/torch/data.py": back}, "python/espalier/low.py: its imports lead",
                                "python/espalier/torch/__init__.py, python/espalier/torch/data.py")

    def test_circles_of_what_a_package_hands_on(self):
        package = {"adapters/nni/espalier_nni/__init__.py": "def given() -> None:\n    from espalier_nni import one\n"}
        self.expect_clean(package | {"adapters/nni/espalier_nni/one.py": "import espalier_nni.two\n",
                                     "adapters/nni/espalier_nni/two.py": ""})
        self.expect_one(package | {"adapters/nni/espalier_nni/one.py": "from espalier_nni import given\n"},
                        "adapters/nni/espalier_nni/__init__.py: its imports lead", "one.py")

    def test_circles_of_programs(self):
        # Each means the b.py beside it; the a.py of tests/core is the only one.
        programs = {"tests/core/a.py": "import b\n", "tests/core/b.py": "", "tests/cli/b.py": "import a\n"}
        self.expect_clean(programs)
        self.expect_one(programs | {"tests/core/b.py": "import a\n"}, "tests/core/a.py: its imports lead", "tests/core/b.py")

    def test_python_that_users_call_has_types(self):
        self.expect_clean({"python/espalier/torch/data.py": "def size(of: list, *more: int) -> int:\n    pass\n"
                                                            "def _own(of):\n    pass\n",
                           "python/espalier/_run.py": "def run(of):\n    pass\n"})
        for text in ("class Loader:\n    def __init__(self, size) -> None:\n        pass\n",
                     "\nclass Loader:\n    def size(self):\n        pass\n".lstrip("\n")):
            self.expect_one({"python/espalier/torch/data.py": text}, "python/espalier/torch/data.py:2: Loader.", "without a type")

    def test_links_of_pages(self):
        self.expect_clean({"docs/a.md": "# What it is: `a`\n[b](b.md#a-b-c) [here](#what-it-is-a) [out](https://x.org/#y)\n"
                                        "```sh\n[[ -f $x ]](none.md)\n```\n",
                           "docs/b.md": "## [A](a.md), b & c\n".replace(" & ", " ")})
        self.expect_one({"docs/a.md": "\n[b](b.md)\n"}, "docs/a.md:2: links to b.md, which is not there")
        self.expect_one({"docs/a.md": "[b](b.md#c)\n", "docs/b.md": "# B\n"}, "docs/a.md:1: links to #c", "docs/b.md")


class CommitsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.files({**BUILT, "tuner/core/a.cc": "int x;\n"})

    def files(self, files):
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text, encoding="utf-8")

    def git(self, *arguments):
        who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false",
               "-c", "core.hooksPath=/dev/null")
        return subprocess.run(["git", *who, "-C", str(self.root), *arguments], check=True, text=True,
                              env=history.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.strip()

    def commit(self, *paragraphs):
        self.git("commit", "-q", "--allow-empty", *(part for text in paragraphs for part in ("-m", text)))
        return self.git("rev-parse", "HEAD")

    def checked(self, first):
        """What check.py prints, and its exit status."""
        printed = io.StringIO()
        with mock.patch.object(rules, "COMMITS_AFTER", first), mock.patch.object(sys, "argv", ["check.py", str(self.root)]), \
                contextlib.redirect_stdout(printed), self.assertRaises(SystemExit) as ended:
            check.main()
        return printed.getvalue().splitlines(), ended.exception.code

    def test_subjects_that_are_too_long_or_name_two_things(self):
        self.git("init", "-q", "-b", "main")
        self.commit("Old: " + "x" * 100 + "; and more")
        first = self.commit("The last one without a rule; of two things")
        self.commit("x" * rules.MAX_SUBJECT, "A body may be longer; and have semicolons. " + "x" * 100)
        self.assertEqual(self.checked(first)[1], 0)
        self.commit("\u00e9" * rules.MAX_SUBJECT)  # characters, not bytes
        self.assertEqual(self.checked(first)[1], 0)
        long = self.commit("x" * (rules.MAX_SUBJECT + 1))
        two = self.commit("One thing; another")
        lines, code = self.checked(first)
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 3, lines)
        self.assertTrue(lines[0].startswith(f"commit {two[:7]}"), lines)
        self.assertIn('";" in its subject: "One thing; another"', lines[0])
        self.assertTrue(lines[1].startswith(f"commit {long[:7]}"), lines)
        self.assertIn("a subject of 73 characters, more than 72", lines[1])

    def test_merges_have_the_subjects_that_git_gives_them(self):
        self.git("init", "-q", "-b", "main")
        first = self.commit("First")
        self.git("checkout", "-q", "-b", "aside")
        self.commit("Aside")
        self.git("checkout", "-q", "main")
        self.commit("Meanwhile")
        self.git("merge", "-q", "--no-ff", "-m", "Merge; " + "x" * 100, "aside")
        self.assertEqual(self.checked(first)[1], 0)

    def test_a_checkout_that_cannot_tell_says_so_once(self):
        def expect_told():
            lines, code = self.checked("0123456789" * 4)
            self.assertEqual(code, 0)
            self.assertEqual([line for line in lines if "commit" in line],
                             ["commits: not checked, for want of git or of commit 01234567 in this checkout"])
        expect_told()  # no repository
        self.git("init", "-q", "-b", "main")
        expect_told()  # none with a commit
        self.commit("One thing; another")
        expect_told()
        with mock.patch.object(subprocess, "run", side_effect=FileNotFoundError("git")):
            expect_told()


class FiguresTest(unittest.TestCase):

    def count(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return figures.count(check.Tree(root))

    def test_counts(self):
        table = rules.PLUGIN_TABLES["pruner"]
        counted = self.count({
            "README.md": "Three short words\n",
            rules.FIGURES["file"]: ONCE + "enum class Figure {\n  kLoss,\n  kStepTime,  // seconds\n};\n",
            "trial_runner/torch/a.cc": "Tell(Figure::kLoss, Figure::kStepTime);\n",
            "tuner/api/a.cc": "Tell(Figure::kStepTime);\n",
            "tests/api/a_test.cc": "Tell(Figure::kStepTime);\n",
            table: "PluginRow<Pruner> AshaRow();\nPluginTable table{pruners::AshaRow(), pruners::NoneRow()};\n",
            "tuner/core/pruners/asha.h": ONCE,
            "tuner/core/pruners/asha.cc": "PluginRow<Pruner> AshaRow() {}\n",
            "tuner/core/pruners/none.cc": "PluginRow<Pruner> NoneRow() {}\n",
            "tuner/core/core.cc": '#include "tuner/core/pruners/asha.h"\n',
            "allocator/a.h": ONCE + '#include "allocator/pool/a.h"\nstruct A {\n};\n',
            "allocator/pool/a.h": ONCE + '#include "allocator/goodput/a.h"\n',
            "allocator/goodput/a.h": ONCE + '#include "allocator/a.h"\nstruct A {\n  int n;\n};\n',
        })
        self.assertEqual(counted["readme_words"], 3)
        self.assertEqual(counted["files_a_figure"], 3)
        self.assertEqual(counted["files_a_pruner"], 3)
        self.assertEqual(counted["folder_loops"], 1)
        self.assertEqual(counted["loops"], [("allocator", "allocator/goodput", "allocator/pool")])
        self.assertEqual(counted["types_defined_twice"], 1)
        self.assertEqual((counted["largest_flat_folder"], counted["largest_flat_folder_name"]), (4, "tuner/core/pruners"))
        self.assertEqual((counted["files_an_operation"], counted["largest_operation"]), (0, None))

    def test_largest_folder(self):
        flat = {f"tests/core/a.{kind}": "" for kind in ("cc", "h", "cu", "proto", "js", "ts", "sh", "md", "json", "txt")}
        counted = self.count(flat | {"tests/core/__init__.py": "", "tests/core/below/a.cc": "", "tuner/core/a.cc": ""})
        self.assertEqual((counted["largest_flat_folder"], counted["largest_flat_folder_name"]), (8, "tests/core"))

    def test_circles_of_python(self):
        counted = self.count({"python/a.py": "import b\n", "python/b.py": "def f():\n    import a\n", "python/c.py": "import a\n"})
        self.assertEqual((counted["python_circles"], counted["circles"]), (1, [("python/a.py", "python/b.py")]))


if __name__ == "__main__":
    unittest.main()
