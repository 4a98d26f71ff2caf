"""Workers of loaders and the process that reads from them."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import environment_of, kill, processes, wait_for  # noqa: E402

PROGRAM = """
import os, sys
import torch
import espalier.torch as adl

class Large(torch.utils.data.Dataset):  # a batch is more than a pipe holds
    def __len__(self):
        return 1000

    def __getitem__(self, number):
        return bytes(1 << 20)

model = torch.nn.Linear(1, 1)
model = adl.AdaptiveDataParallel(model, torch.optim.SGD(model.parameters(), 0.1))
loader = adl.AdaptiveDataLoader(Large(), batch_size=1, num_workers=2, prefetch_factor=8, collate_fn=lambda batch: batch,
                                worker_init_fn=lambda number: open(f"{sys.argv[1]}/{number}", "w").close())
for epoch in adl.epochs(1):
    for batch in loader:
        print("reading", flush=True)
        sys.stdin.read()  # until it is killed
"""


class Workers(unittest.TestCase):
    def test_they_end_with_the_process_that_reads_though_it_is_killed(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        mark = f"ESPALIER_TEST_OF_WORKERS={folder}"
        name, value = mark.split("=")
        program = subprocess.Popen([sys.executable, "-c", PROGRAM, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=os.environ | {name: value})
        all_of_it = lambda: [pid for pid, _, _ in processes() if mark.encode() in environment_of(pid)]
        self.addCleanup(lambda: [kill(pid) for pid in all_of_it()])
        self.assertEqual(program.stdout.readline(), "reading\n")
        self.assertGreaterEqual(len(all_of_it()), 3)
        wait_for(lambda: sorted(os.listdir(folder)) == ["0", "1"], "the program's own worker_init_fn to be called in both")
        program.kill()
        program.wait()
        wait_for(lambda: not all_of_it(), "its workers to end")
        program.stdin.close()
        program.stdout.close()


if __name__ == "__main__":
    unittest.main()
