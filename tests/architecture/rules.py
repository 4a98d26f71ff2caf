"""The rules that check.py holds the tree to. Change one here, with its reason, or not at all.

A folder stands for all below it that has no row of its own.
"""

# What those who use the allocator see of it.
ALLOCATOR = ["allocator", "allocator/goodput", "allocator/pool", "allocator/policies"]

# The command line: what verbs are made of, and the folders below it.
CLI = ["tuner/cli", "tuner/cli/machine", "tuner/cli/options", "tuner/cli/simulate", "tuner/cli/verbs",
       "tuner/cli/report", "tuner/cli/views"]

# The service, and the library of trials, with the folders below them.
SERVER = ["tuner/server", "tuner/server/access", "tuner/server/engines", "tuner/server/grpc",
          "tuner/server/http", "tuner/server/loop", "tuner/server/optuna", "tuner/server/simulations"]
TORCH = ["trial_runner/torch", "trial_runner/torch/checkpoints", "trial_runner/torch/engine",
         "trial_runner/torch/gradients", "trial_runner/torch/group", "trial_runner/torch/process"]

# Which of our folders the files of a folder may include, besides those of their own. One row is one
# of docs/dependencies.md. What a header brings along is what its own folder may see.
FOLDERS = {
    # The leaves, and the pure parts.
    "base": [],
    "tuner/credentials": ["base"],
    "tuner/forwarding": ["base", "tuner/credentials"],
    "tuner/door": ["base", "tuner/credentials"],
    "search_spaces": ["base"],
    # Texts of others: NNI's, which is also ours, and Optuna's.
    "search_spaces/formats": ["base", "search_spaces"],
    "allocator/goodput": ["base"],
    "allocator/pool": ["base", "allocator/goodput"],
    "allocator/allocation": ["base", "allocator/pool"],
    "allocator/policies": ["base", "allocator/goodput", "allocator/pool",
                           "allocator/allocation"],
    "allocator": ["base", "allocator/goodput", "allocator/pool", "allocator/policies"],
    # Reads recorded workloads from files; what runs them is pure.
    "allocator/simulator/loads": ["base", "allocator"],
    "tuner/messages": ["base", "allocator/goodput"],
    "tuner/messages/wire": ["base", "tuner/messages", "tuner/proto"],
    "tuner/core": ["base", "tuner/messages", "search_spaces", "search_spaces/formats",
                   *ALLOCATOR],
    # What is worked out of a study's record, for every frontend that shows it.
    "tuner/analysis": ["base", "search_spaces", "search_spaces/formats", "tuner/core"],
    # Studies on virtual time, around the production core.
    "tuner/simulator": ["base", "tuner/core", "allocator", "allocator/goodput"],
    # The service, from the inside out.
    "tuner/study_file": ["base", "search_spaces", "search_spaces/formats", "tuner/core"],
    "tuner/storage": ["base", "search_spaces/formats", "tuner/core", "tuner/messages",
                      "tuner/study_file"],
    "tuner/proto": [],
    "tuner/api": ["base", "tuner/credentials", "tuner/messages/wire", "search_spaces",
                  "search_spaces/formats", "tuner/core", "tuner/study_file", "tuner/proto"],
    # The pages for browsers, as bytes. Their sources beside it, tuner/web/page, are no C++.
    "tuner/web/assets": ["base"],
    # What pages follow: what has changed since they looked.
    "tuner/web/feed": ["base", "tuner/core"],
    # What pages show, as JSON.
    "tuner/web/view": ["base", "tuner/credentials", "tuner/messages", "search_spaces", "search_spaces/formats",
                       "tuner/core", "tuner/analysis", "tuner/api", "tuner/web/feed"],
    "tuner/server/access": ["base", "tuner/credentials", "tuner/messages", "tuner/core", "tuner/api"],
    # The owner's thread of the core, and what is counted of it.
    "tuner/server/loop": ["base", "tuner/messages", "tuner/core", "tuner/study_file", "tuner/storage", "tuner/api"],
    "tuner/server/engines": ["base", "tuner/credentials", "tuner/core", "tuner/server/access"],
    # Optuna's samplers, in processes of their own.
    "tuner/server/optuna": ["base", "search_spaces", "tuner/core", "tuner/server/loop"],
    "tuner/server/grpc": ["base", "tuner/credentials", "tuner/door", "tuner/proto", "tuner/api",
                          "tuner/server/access", "tuner/server/loop"],
    # Beside the service, in processes of their own, which are run as those of engines are.
    "tuner/server/simulations": ["base", "tuner/core", "tuner/api", "tuner/server/engines",
                                 "tuner/server/loop", "allocator/policies"],
    "tuner/server/http": ["base", "tuner/credentials", "tuner/door", "tuner/study_file", "tuner/api", "tuner/web/assets",
                          "tuner/web/feed", "tuner/web/view", "tuner/server/access", "tuner/server/loop",
                          "tuner/server/simulations"],
    "tuner/server": ["base", "tuner/credentials", "tuner/core", "tuner/storage", "tuner/api", "tuner/web/feed",
                     "tuner/server/access", "tuner/server/loop", "tuner/server/grpc", "tuner/server/http",
                     "tuner/server/optuna", "tuner/server/simulations", "allocator/policies"],
    # Frontends of the service, onto its own studies: it knows none of them by name.
    "adapters/adaptdl": ["base", "tuner/core", "tuner/study_file", "tuner/api",
                         "tuner/server", "tuner/server/engines"],
    "adapters/nni": ["base", "tuner/credentials", "search_spaces", "tuner/core",
                     "tuner/study_file", "tuner/api", "tuner/server", "tuner/server/http"],
    "adapters/optuna": ["base", "search_spaces", "search_spaces/formats", "tuner/core", "tuner/analysis",
                        "tuner/study_file", "tuner/api", "tuner/server", "tuner/server/http"],
    "adapters/optuna/file": ["base", "search_spaces/formats", "tuner/core",
                             "tuner/study_file", "tuner/storage"],
    # One executable for every verb; `run` embeds service and agent.
    "tuner/cli/views": ["base", "search_spaces", "tuner/core", "tuner/analysis", "tuner/study_file",
                        "tuner/messages", "tuner/messages/wire", "tuner/proto", "allocator"],
    # A study's record as the pages in a file.
    "tuner/cli/report": ["base", "tuner/credentials", "tuner/api", "tuner/proto",
                         "tuner/web/assets", "tuner/web/view", "tuner/cli/views"],
    "tuner/cli/machine": ["base"],
    "tuner/cli/options": ["base", "tuner/core", "tuner/study_file", "tuner/server", "tuner/server/access",
                          "tuner/server/engines", "tuner/server/optuna", "tuner/cli/machine", "tuner/cli/views", "allocator",
                          "allocator/policies", "trial_runner/agent"],
    "tuner/cli": ["base", "tuner/credentials", "tuner/core", "tuner/study_file",
                  "tuner/storage", "tuner/proto", "tuner/api", "tuner/server", "tuner/server/access",
                  "tuner/server/engines", "tuner/cli/machine", "tuner/cli/options",
                  "tuner/cli/report", "tuner/cli/views", "adapters/adaptdl", "adapters/nni", "adapters/optuna", "allocator",
                  "allocator/policies", "trial_runner/agent"],
    "tuner/cli/simulate": ["base", "tuner/study_file", "tuner/storage", "tuner/simulator",
                           "tuner/cli", "tuner/cli/machine", "tuner/cli/options", "tuner/cli/report",
                           "tuner/cli/views", "allocator",
                           "allocator/simulator/loads"],
    "tuner/cli/verbs": ["base", "tuner/credentials", "tuner/forwarding",
                        "search_spaces/formats", "tuner/core", "tuner/study_file", "tuner/storage",
                        "tuner/api", "tuner/server", "tuner/server/access", "tuner/server/engines",
                        "tuner/cli", "tuner/cli/machine",
                        "tuner/cli/options", "tuner/cli/report", "tuner/cli/views", "tuner/cli/simulate",
                        "adapters/adaptdl", "adapters/optuna",
                        "adapters/optuna/file",
                        "allocator", "allocator/policies", "trial_runner/agent"],
    # The replicas and what starts them.
    "trial_runner/elastic": ["base", "tuner/messages", "allocator/goodput"],
    "trial_runner/control": ["base", "tuner/messages", "tuner/messages/wire",
                             "trial_runner/elastic"],
    # Members prove with digests that they know the secret of their generation.
    "trial_runner/collectives/rendezvous": ["base", "tuner/credentials", "tuner/messages"],
    # The seam; what is behind it is found by its row in make_collectives.cc.
    "trial_runner/collectives": ["base", "tuner/messages"],
    "trial_runner/collectives/cuda": ["base", "trial_runner/collectives", "trial_runner/kernels"],
    "trial_runner/collectives/gloo": ["base", "tuner/credentials", "trial_runner/collectives",
                                      "trial_runner/collectives/cuda", "trial_runner/collectives/rendezvous"],
    # Arithmetic on raw memory, the host's and a GPU's.
    "trial_runner/kernels": ["base"],
    "trial_runner/datasets": ["base", "trial_runner/elastic"],
    # The headers that programs of users include, and no source.
    "trial_runner/torch": ["trial_runner/elastic", "trial_runner/datasets"],
    "trial_runner/torch/process": ["base", "trial_runner/elastic", "trial_runner/control",
                                   "trial_runner/collectives", "trial_runner/collectives/cuda",
                                   "trial_runner/kernels", "trial_runner/torch"],
    "trial_runner/torch/gradients": ["base", "trial_runner/collectives", "trial_runner/kernels"],
    "trial_runner/torch/group": ["base", "trial_runner/elastic", "trial_runner/control",
                                 "trial_runner/collectives", "trial_runner/collectives/rendezvous",
                                 "trial_runner/torch/process"],
    "trial_runner/torch/checkpoints": ["base", "trial_runner/control", "trial_runner/torch",
                                       "trial_runner/torch/group", "trial_runner/torch/process"],
    "trial_runner/torch/engine": ["base", "trial_runner/elastic", "trial_runner/collectives",
                                  "trial_runner/datasets", "trial_runner/kernels", "trial_runner/torch",
                                  "trial_runner/torch/checkpoints", "trial_runner/torch/gradients",
                                  "trial_runner/torch/group", "trial_runner/torch/process"],
    # Programs in Python: a C interface over the runtime. No source here sees Python.
    "trial_runner/python": ["base", "trial_runner/elastic", *TORCH],
    "trial_runner/agent": ["base", "tuner/credentials", "tuner/door", "tuner/forwarding", "tuner/proto"],
    # Programs of users: what they see of ours is the trial runner.
    "examples": ["base", "trial_runner/torch"],
    # Tests see everything of ours; the walls below hold for them too.
    "tests": ["*"],
}

# Decide, and do nothing else: no I/O, clock, thread or hidden randomness.
PURE = ["tuner/core", "tuner/analysis", "tuner/messages", "tuner/simulator", *ALLOCATOR, "allocator/allocation",
        "search_spaces", "search_spaces/formats", "trial_runner/elastic"]

# A folder of tests mirrors one of the tree: tests/trial_runner/agent is trial_runner/agent. Those
# of tuner stand in tests itself: tests/cli is tuner/cli. So do those of python/espalier in
# tests/python.
MIRRORS = {"tests/": ["", "tuner/"], "tests/python/": ["python/", "python/espalier/"]}

# Folders of tests that mirror none, with those below them, and why.
MIRRORS_NONE = {
    "tests/architecture": "rules of the whole tree",
    "tests/benchmarks": "measures the whole, and parts of it side by side",
    "tests/contract": "what each implementation of a seam keeps to, wherever it lies",
    "tests/core/samplers/optuna": "what Optuna computed, which samplers are held to",
    "tests/docs/extending": "the plug-ins that docs/extending.md shows",
    "tests/e2e": "processes that speak over sockets",
    "tests/fuzz": "what reads the inputs of strangers, wherever it lies",
    "tests/gpu": "what scripts/gpu.sh runs on a machine with a GPU, of several folders",
    "tests/package": "a project that uses what is installed",
    "tests/protocol": "messages and programs of former releases",
    "tests/python/page": "what docs/python.md shows",
    "tests/simulation": "the core among simulated faults, with its storage",
    "tests/suite": "which tests run when, and what they cost",
    "tests/trial_runner/golden": "learning curves that another program has made",
}

# Third parties, each behind its wall. `sources` are the folders whose .cc files may include it,
# `headers` the folders or files whose headers may. Whoever includes such a header counts as
# including the third party, so a type that leaks through a header is found where it arrives.
# The tests of a folder (MIRRORS) may see what its sources may, in their own headers too.
WALLS = {
    "torch": {
        "includes": r"^(torch|ATen|c10|caffe2|gloo)/",
        "sources": [*TORCH, "trial_runner/collectives", "trial_runner/collectives/cuda",
                    "trial_runner/collectives/gloo", "trial_runner/python", "examples",
                    "tests/benchmarks", "tests/docs", "tests/e2e", "tests/package"],
        "headers": [*TORCH, "trial_runner/python", "examples", "trial_runner/collectives/buffer_tensor.h",
                    "trial_runner/collectives/cuda/staged_operations.h"],
    },
    "cuda": {
        "includes": r"^(cuda|cuda_\w+|nccl)\.h$|^c10/cuda/|^ATen/cuda/",
        "sources": ["trial_runner/collectives/cuda", "trial_runner/kernels"],
        "headers": ["trial_runner/collectives/cuda/communicator_stream.h",
                    "trial_runner/collectives/cuda/nccl_api.h",
                    "trial_runner/collectives/cuda/staged_operations.h"],
    },
    "protobuf": {
        "includes": r"^google/protobuf/|\.pb\.h$",
        "sources": ["tuner/messages/wire", "tuner/api", "tuner/web/view", *SERVER, *CLI, "trial_runner/agent",
                    "trial_runner/control", "adapters/nni", "adapters/optuna", "tests/contract",
                    "tests/e2e", "tests/benchmarks", "tests/fuzz", "tests/protocol", "tests/adapters/adaptdl"],
        "headers": ["tuner/messages/wire", "tuner/api", *SERVER, "tuner/cli",
                    "tuner/cli/report", "tuner/cli/views", "trial_runner/agent", "trial_runner/control",
                    "adapters/optuna"],
    },
    "grpc": {
        "includes": r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$",
        "sources": [*SERVER, "tuner/cli", "trial_runner/agent", "adapters/optuna",
                    "tests/cli/verbs", "tests/door", "tests/e2e", "tests/benchmarks", "tests/protocol"],
        "headers": ["tuner/proto", *SERVER, "trial_runner/agent", "adapters/optuna"],
    },
    "json": {
        "includes": r"^nlohmann/",
        "sources": ["base/json", "search_spaces", "search_spaces/formats", "tuner/study_file", "tuner/storage",
                    "tuner/api", "tuner/web/view", *SERVER, *CLI, "trial_runner/agent", "trial_runner/control",
                    "adapters/adaptdl", "adapters/nni", "adapters/optuna", "adapters/optuna/file",
                    "examples",
                    "tests/e2e", "tests/benchmarks", "tests/fuzz", "tests/protocol",
                    "tests/trial_runner/golden"],
        "headers": ["base/json/parse_json.h", "search_spaces/json_text.h",
                    "adapters/optuna/dashboard/listener.h", "tests/api/answer_json.h"],
    },
    # Reads JSON as Python writes it, with NaN and Infinity, which the library above refuses.
    "python json": {
        "includes": r"^rapidjson/",
        "sources": ["base/json", "search_spaces/formats", "adapters/nni", "adapters/optuna", "tests/fuzz"],
        "headers": ["base/json/python_json.h"],
    },
    "sqlite": {
        "includes": r"^sqlite3",
        "sources": ["tuner/storage", "tests/adapters/optuna/file", "tests/contract", "tests/e2e",
                    "tests/fuzz"],
        "headers": ["tuner/storage"],
    },
    "patterns": {
        "includes": r"^re2/",
        "sources": ["base/patterns"],
        "headers": [],
    },
    "header blocks": {
        "includes": r"^nghttp2/",
        "sources": ["tuner/door"],
        "headers": [],
    },
    "http": {
        "includes": r"^httplib\.h$",
        "sources": [*SERVER, "adapters/optuna/dashboard", "tests/e2e", "tests/fuzz"],
        "headers": ["adapters/optuna/dashboard/listener.h", "tuner/server/http/http_connection.h",
                    "tuner/server/http/http_request_server.h", "tuner/server/http/library_server.h"],
    },
    # What browsers unpack: the library of HTTP packs far too hard.
    "packing": {
        "includes": r"^(brotli/|zlib\.h$)",
        "sources": ["tuner/server/http", "tuner/web/assets", "examples"],
        "headers": [],
    },
    "prometheus": {
        "includes": r"^prometheus/",
        "sources": [*SERVER, "tests/adapters/adaptdl", "tests/adapters/nni", "tests/benchmarks"],
        "headers": [*SERVER],
    },
    # Its header is what made a quarter of the build of `tuner`, when each verb included it.
    "command line": {
        "includes": r"^CLI/",
        "sources": ["tuner/cli/options"],
        "headers": [],
    },
    # Seconds of compiling for each source that includes it.
    "linear algebra": {
        "includes": r"^(unsupported/)?Eigen/",
        "sources": ["tuner/core/samplers", "tuner/core/population"],
        "headers": ["tuner/core/samplers/cma_es.h", "tuner/core/samplers/cma_margin.h",
                    "tuner/core/samplers/gp", "tuner/core/population/time_varying_process.h"],
    },
    "log": {
        "includes": r"^(spdlog|fmt)/",
        "sources": ["tuner/storage", "tuner/door", *SERVER, *CLI, "trial_runner/agent",
                    "trial_runner/control", *TORCH, "adapters/adaptdl", "adapters/optuna",
                    "tests"],
        "headers": [],
    },
    "test framework": {
        "includes": r"^(gtest|gmock)/",
        "sources": ["tests"],
        "headers": ["tests"],
    },
}

# No source sees both. The torch wheel carries headers of an older protobuf, and libtorch exports
# weak httplib symbols: such a source does not compile, or such a program calls the wrong function.
NEVER_TOGETHER = [("torch", "protobuf"), ("torch", "grpc"), ("torch", "http")]

# What is not called, where ("*": everywhere), and what is instead. `except` are folders or files
# that may. Matched in code, not in comments or strings.
PURE_SEED = "draw from a seeded espalier::Random that the caller passes"
PURE_TIME = "take an espalier::Time as an argument"
BANNED = [
    {"pattern": r"\bstd::rand\b|\bsrand\s*\(|(?<![\w:.>])rand\s*\(\s*\)", "where": ["*"],
     "instead": "espalier::Random"},
    {"pattern": r"\bstd::random_device\b|\bstd::mt19937|\bstd::default_random_engine\b",
     "where": PURE, "instead": PURE_SEED},
    {"pattern": r"\bstd::\w+_distribution\b", "where": ["*"],
     "instead": "the distributions of espalier::Random, which are the same with every library"},
    {"pattern": r"\bstd::shuffle\b|\bstd::sample\b", "where": ["*"],
     "instead": "a shuffle drawn from espalier::Random: the standard's differs between libraries"},
    {"pattern": r"(?<![\w.>])(?:std::|::)?system\s*\(|(?<![\w.>])popen\s*\(", "where": ["*"],
     "except": ["tests/e2e", "tests/benchmarks"],
     "instead": "fork and exec with an argument vector: no shell reads what a user wrote"},
    {"pattern": r"\bstd::chrono::(?:system|steady|high_resolution)_clock\b|(?<![\w.>])Now\s*\(\s*\)|"
                r"\bclock_gettime\b|\bgettimeofday\b|\bstd::time\b",
     "where": PURE, "instead": PURE_TIME},
    {"pattern": r"#\s*include\s*<(?:thread|mutex|condition_variable|future|atomic|shared_mutex)>",
     "where": PURE, "except": ["tuner/core/samplers/memo.h"],
     "instead": "no threads here: the caller owns them"},
    {"pattern": r"#\s*include\s*<(?:fstream|iostream|filesystem|random|unistd\.h)>",
     "where": PURE, "instead": "values in, values out: the caller does the I/O and seeds"},
    # Where search_spaces talks to the JSON library, exceptions stay inside that source.
    {"pattern": r"\bthrow\b", "where": PURE, "except": ["search_spaces", "search_spaces/formats"],
     "instead": "absl::Status for what can happen, ESPALIER_CHECK for what cannot"},
    {"pattern": r"\bsleep_for\b|\bsleep_until\b|\busleep\s*\(|\bnanosleep\s*\(|(?<![\w.>])sleep\s*\(|"
                r"\btime\.sleep\s*\(|\babsl::SleepFor\b",
     "where": ["tests"],
     # Programs of trials, whose steps take their time, and the load beside tests, which comes and goes.
     "except": ["tests/e2e", "tests/benchmarks", "tests/gpu", "tests/python/integrations/fabric_probe.py",
                "tests/python/integrations/lightning_module.py", "tests/suite/load.py"],
     "instead": "wait for the condition itself, or pass the injected clock"},
    {"pattern": r"(?<!\w)assert\s*\(", "where": ["*"], "languages": [".cc", ".h"],
     "instead": "ESPALIER_CHECK, which also holds in optimised builds"},
    {"pattern": r"\b[Jj]son::parse\s*\(|\b[Jj]son::accept\s*\(|\b[Jj]son::sax_parse\s*\(|[.>]Parse<|"
                r"\brapidjson::Reader\b", "where": ["*"],
     # The one with its own count of levels says also where they stand; programs of users have their own texts.
     "except": ["base/json", "search_spaces/json_text.cc", "examples", "tests"],
     "instead": "ParseJson or ParsePythonJson, which hold every door to one limit of depth"},
    {"pattern": r"\bfor\s*\([^;{]*:\s*(?:std::filesystem::|fs::)?(?:recursive_)?directory_iterator\b", "where": ["*"],
     "except": ["examples", "tests"],
     "instead": "FolderEntries: going on to the next entry throws where the disk fails"},
    {"pattern": r"\busing\s+namespace\s+std\b", "where": ["*"], "instead": "name what you use"},
    {"pattern": r"\b(?:innerHTML|outerHTML|dangerouslySetInnerHTML|insertAdjacentHTML|srcdoc)\b|\bdocument\.write|\beval\s*\(|"
                r"\bnew\s+Function\b|\bjavascript:", "where": ["tuner/web/page"],
     "instead": "React's children, textContent or fillText: what others wrote is never markup or code"},
    {"pattern": r"\bGTEST_SKIP\b|\bDISABLED_\w|\bunittest\.skip|\bpytest\.mark\.skip", "where": ["*"],
     "instead": "a test that runs, or none"},
]

# A row of the tables above is the truth about this program too, so it is not read as a program.
NOT_SCANNED = ["tests/architecture"]

# Words that say nothing about what a file or folder holds. Whole words of a name: string_util.h.
EMPTY_NAMES = ["util", "utils", "helper", "helpers", "misc", "common"]

# Lines of a source file. The ratchet: a file over the limit is listed with the length it has, and
# may only become shorter.
MAX_LINES = 600
LONGER = {}

# Lines of a class: of its definition and of the members that are defined elsewhere, in all files.
# The ratchet as above.
MAX_CLASS_LINES = 1200
LONGER_CLASSES = {}

# Lines of a function, from the first of its declaration to its closing brace, and of a test. Those
# that may be longer, and why: {"FILE FUNCTION": reason}.
MAX_FUNCTION_LINES = 70
LONGER_FUNCTIONS = {
    "tuner/storage/change_writer.cc ChangeWriter::Impl::Prepare":
        "a table of what each statement says",
}

# Values in a brace list of an aggregate without names. In production code: in a test the values are
# the example. Files that have such lists yet, and how many; the ratchet as above.
MAX_POSITIONAL = 4
POSITIONAL = {}

# What a trial tells of its training: the enumerators that name a figure, one row each. Files of
# production code that name one: the table, and what measures it.
FIGURES = {"file": "tuner/messages/training_figures.h", "enumeration": "Figure"}
MAX_FIGURE_FILES = 3

# The tables of what can be plugged in, by what the figures call them. Files of production code that
# name a plug-in: its source, and the table.
MAX_PLUGIN_FILES = 2
PLUGIN_TABLES = {
    "sampler": "tuner/core/samplers/sampler.cc",
    "pruner": "tuner/core/pruners/pruner.cc",
    "terminator": "tuner/core/terminators/terminator.cc",
    "policy": "allocator/policies/policy.cc",
    "pool_size_rule": "allocator/pool_size/pool_size.cc",
    "engine": "tuner/server/engines/engines.cc",
}

# Folders of the Python package whose public modules users call: their functions have types.
TYPED = ("python/espalier", "python/espalier/torch")

# The commit after which each subject is to fit into a line of `git log --oneline`, and to name one thing: what a
# semicolon joins are two commits. Those up to it were made before there was a rule.
COMMITS_AFTER = "13a5f3e34e025f1e975b567c932acf4f5b987400"
MAX_SUBJECT = 72
NEVER_IN_SUBJECT = ";"

# Words of the page that people read first.
MAX_README_WORDS = 1000
