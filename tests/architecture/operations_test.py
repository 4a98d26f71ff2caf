#!/usr/bin/env python3
"""Which files are found to know an operation of the service, in a small tree."""

import tempfile
import unittest
from pathlib import Path

import check
import figures
import operations

ONCE = "#pragma once\n"


class OperationsTest(unittest.TestCase):

    TREE = {
        "tuner/proto/tuner.proto": "service Tuner {\n  rpc SetPolicy(PolicyRequest) returns (Pool);\n  rpc Ask(AskRequest)\n"
                                   "      returns (Trial);\n  rpc GetTrial(TrialId) returns (Trial);\n  rpc Prune(TrialId) returns "
                                   "(Trial);\n  rpc Agent(stream Said) returns (stream Heard);\n}\n",
        "docs/openapi.json": '{"paths": {"/api/pool/policy": {"post": {"operationId": "SetPolicy"}}, "/api/studies/{study}/ask": '
                             '{"parameters": [], "post": {"operationId": "Ask"}}, "/api/trials/{trial}": {"get": '
                             '{"operationId": "GetTrial"}, "delete": {"operationId": "Prune"}}}}',
        "tuner/core/state/event.h": ONCE + "using Event =\n    std::variant<DrawTrial, ChangePolicy, Tick>;\n",
        "tuner/api/operations.cc": "Pool SetIt(Tuner& tuner, const v1::PolicyRequest& request) {\n  Post(ChangePolicy{});\n"
                                   "  Post(Tick{});\n}\nTrial Ask(Tuner& tuner, const v1::AskRequest& request) {\n  Post(Tick{});\n"
                                   "  Post(DrawTrial{});\n}\n",
        "python/espalier/client.py": "class Client:\n    def policy(self):\n        self._call('POST', ['pool', 'policy'])\n"
                                     "    def ask(self, study):\n        self._call('POST', ['studies', study, 'ask'], 1)\n",
    }
    WRITTEN = {"docs/openapi.json"}
    OF_EACH = {"tuner/proto/tuner.proto"}

    def expect(self, operation, files, beside, callers=None):
        """Of the files beside the tree above, these name it, and, if it is told, these of them only call it. Returns those
        of the tree."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in (self.TREE | beside).items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            found = operations.files_of_operations(check.Tree(root), figures.SOURCES)
        self.assertEqual(set(found), {"SetPolicy", "Ask", "GetTrial", "Prune"})
        own, calling = found[operation]
        self.assertEqual(own & calling, set())
        self.assertEqual({name for name in own | calling if name not in self.TREE}, set(files))
        if callers is not None:
            self.assertEqual(calling, set(callers))
        return {name for name in own | calling if name in self.TREE}

    def test_files_that_are_bound_to_it(self):
        all_of = self.expect("SetPolicy", [], {})
        self.assertEqual(all_of, set(self.TREE) - self.WRITTEN)
        self.assertEqual(self.expect("Ask", [], {}), set(self.TREE) - self.WRITTEN)
        self.assertEqual(self.expect("GetTrial", [], {}), self.OF_EACH)

    def test_spellings(self):
        for name, text in {"a.cc": "stub.SetPolicy(request);", "b.cc": "// as set_policy does", "c.py": "PolicyRequest()",
                           "d.sh": "curl $SERVICE/api/pool/policy -d {}", "e.md": "POST /api/pool/policy?now=1",
                           "f.h": "void On(const ChangePolicy&);", "g.py": "client.Client(at).policy('fixed')"}.items():
            with self.subTest(text=text):
                self.expect("SetPolicy", ["adapters/nni/" + name], {"adapters/nni/" + name: text + "\n"})
        self.expect("SetPolicy", ["docs/python.md"], {"docs/python.md": "| `policy` |\n"})

    def test_callers(self):
        self.expect("SetPolicy", ["tuner/server/a.cc", "tuner/cli/a.cc", "docs/a.md", "docs/b.md"], {
            "tuner/server/a.cc": "SetPolicy();\n", "tuner/cli/a.cc": "SetPolicy();\n",
            "docs/a.md": "client.policy('fixed')\n", "docs/b.md": "client.policy('fixed'), or POST /api/pool/policy\n",
        }, callers=["python/espalier/client.py", "tuner/cli/a.cc", "docs/a.md"])

    def test_what_is_written_from_the_table(self):
        table = operations.WRITTEN_TABLE + "| `POST /api/pool/policy` | sets it | submit |\n"
        self.expect("SetPolicy", ["docs/b.md"], {"docs/a.md": "Calls\n\n" + table + "\nand so on\n",
                                                 "docs/b.md": table + "\nPOST /api/pool/policy\n"})

    def test_a_link_is_followed_by_get(self):
        self.expect("SetPolicy", [], {"tuner/server/a.cc": '"<a href=\\"api/pool/policy\\">"\n'})
        self.expect("GetTrial", ["tuner/server/a.cc"], {"tuner/server/a.cc": '"<a href=\\"api/trials/1\\">"\n'})

    def test_what_only_looks_like_it(self):
        self.expect("SetPolicy", [], {
            "tests/api/a_test.cc": "SetPolicy();\n", "tuner/core/a.cc": "ResetPolicy(); SetPolicyNow(); policy(); Tick();\n",
            "docs/http.md": "GET /api/pool/policy, /api/pool/policy/now, `policy`\n", "docs/sample.json": '"SetPolicy"',
            "docs/optuna.md": "optuna.set_policy()\n", "tuner/server/b.cc": '"/optuna.StorageService/SetPolicy"\n'})

    def test_a_name_of_one_word_is_marked(self):
        self.expect("Ask", ["tuner/cli/a.cc", "tuner/cli/b.cc", "tuner/cli/c.cc", "docs/http.md"], {
            "tuner/cli/a.cc": "client->Ask(request);\n", "tuner/cli/b.cc": '{"Ask", Role::kView};\n',
            "tuner/cli/c.cc": "Call(&v1::Tuner::Stub::Ask);\n", "tuner/cli/d.cc": '// Ask them.\nport.Ask(); Call("ask");\n',
            "docs/http.md": "/api/studies/digits/ask\n", "docs/pool.md": "Ask for `ask`.\n"})

    def test_a_path_with_several_methods(self):
        self.expect("GetTrial", ["docs/a.md", "docs/b.md", "docs/d.md"], {
            "docs/a.md": "GET /api/trials/ID\n", "docs/b.md": "/api/trials/3\n", "docs/c.md": "DELETE /api/trials/ID\n",
            "docs/d.md": "`GET` or `DELETE /api/trials/{trial_id}`\n"})

    def test_an_rpc_of_another_service(self):
        self.expect("GetTrial", ["adapters/optuna/python/b.py", "adapters/nni/c.cc"], {
            "adapters/optuna/storage.proto": "service StorageService {\n  rpc GetTrial(A) returns (B);\n}\n",
            "adapters/optuna/a.cc": "Status GetTrial(A a);\n", "adapters/optuna/python/b.py": "call('GetTrial')\n",
            "adapters/nni/c.cc": "GetTrial(id);\n"})


if __name__ == "__main__":
    unittest.main()
