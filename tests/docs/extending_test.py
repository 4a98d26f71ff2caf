"""The code in docs/extending.md is that of tests/docs/extending, which is compiled and run."""
import unittest

import code_blocks


class Extending(unittest.TestCase):
    def test_code_is_that_of_the_files_it_names(self):
        self.assertEqual(code_blocks.check(self, "docs/extending.md"), 7)


if __name__ == "__main__":
    unittest.main()
