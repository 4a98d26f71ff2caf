import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import uses  # noqa: E402

BUILT = {"tuner": "bin/tuner", "delay_relay": "bin/delay_relay", "espalier_torch": "lib/libespalier_torch.so", "spirals": "bin/spirals",
         "test_core": "bin/test_core", "espalier_base": "base/libespalier_base.a", "bench_jobs": "bin/bench_jobs"}


def test_of(*command, environment=(), name="mine"):
    return uses.Test(name, list(map(str, command)), list(environment))


class Uses(unittest.TestCase):
    def test_programs_that_a_script_or_what_it_imports_names(self):
        addresses = test_of("python3", uses.ROOT / "tests/e2e/hosts/addresses_test.py")
        names = {path.name for path in uses.scripts(addresses)}
        self.assertLessEqual({"addresses_test.py", "hosts.py", "harness.py"}, names)
        self.assertEqual(uses.programs(addresses, BUILT), ["bin/delay_relay", "bin/tuner"])

    def test_modules_of_another_folder_of_tests(self):
        jobs = test_of("python3", uses.ROOT / "tests/python/adaptdl/kubernetes_jobs_test.py")
        self.assertLessEqual({"adaptdl_jobs_test.py", "kubernetes_test.py"}, {path.name for path in uses.scripts(jobs)})

    def test_programs_of_the_command_and_the_environment(self):
        self.assertEqual(uses.programs(test_of("/somewhere/build/bin/test_core"), BUILT), ["bin/test_core"])
        library = test_of("true", environment=["ESPALIER_TORCH_LIBRARY=/build/lib/libespalier_torch.so"])
        self.assertEqual(uses.programs(library, BUILT), ["lib/libespalier_torch.so"])

    def test_a_benchmark_s_script_and_program(self):
        jobs = test_of(uses.ROOT / "scripts/bench.sh", "jobs", "--smoke", name="bench_smoke_jobs")
        self.assertIn("bin/bench_jobs", uses.programs(jobs, BUILT))

    def test_static_libraries_only_where_a_script_says_so(self):
        package = test_of("python3", uses.ROOT / "tests/package/package_test.py")
        self.assertIn("base/libespalier_base.a", uses.programs(package, BUILT))

    def test_digests_differ_by_script_and_not_by_other_tests(self):
        digests = uses.Digests()
        digests.built["ci"] = {}
        one = digests.of(test_of("python3", uses.ROOT / "tests/e2e/hosts/addresses_test.py"), "ci")
        other = digests.of(test_of("python3", uses.ROOT / "tests/e2e/hosts/network_test.py"), "ci")
        self.assertNotEqual(one, other)
        self.assertEqual(one, digests.of(test_of("python3", uses.ROOT / "tests/e2e/hosts/addresses_test.py"), "ci"))


if __name__ == "__main__":
    unittest.main()
