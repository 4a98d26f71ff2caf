"""The pages of `tuner serve` behind a proxy that adds a path, in a headless Chromium."""
import environment

environment.run_inside(__file__)

import unittest

from harness import TunerTest
from page_case import BrowserTest
from small_proxy import SmallProxy


class Proxied(BrowserTest, TunerTest):
    def begin(self, path, host="127.0.0.1", keeps=False, options=()):
        """A service with a study behind a proxy; self.base is its address there."""
        self.proxy = SmallProxy(path, keeps)
        self.addCleanup(self.proxy.close)
        name = f"{host}:{self.proxy.port}"
        self.serve(self.dir / "pool.db", options=[option.replace("NAME", name) for option in options])
        self.proxy.service = self.http
        self.base = f"http://{name}{path}"
        program = self.write("trial.sh", "#!/bin/sh\nexec sleep 600\n", 0o755)
        self.run_tuner("submit", self.study([program], name="far-off", trials=1, stop_grace_s=0), "--service", self.grpc)

    def use_it(self):
        """Through the pages as people go, and from outside to one that lies deep."""
        self.open("/", "● live", "far-off")
        self.browser.execute_script("""[...document.querySelectorAll("a")].find((one) => one.innerText === "far-off").click();""")
        self.wait_for(lambda: self.browser.current_url.startswith(self.base + "/ui/studies/1"), "the study's address")
        self.browser.get(self.browser.current_url)
        self.wait_text("● live")
        self.wait_text("far-off")
        self.assertEqual(self.proxy.strays, [], "nothing was asked for beside the path")
        self.assert_no_errors()

    def test_one_that_takes_its_path_off_needs_no_option(self):
        self.begin("/user/ada/proxy/7078")
        self.use_it()

    def test_one_that_hands_its_path_on_is_told_by_an_option(self):
        self.begin("/espalier", keeps=True, options=("--web-prefix", "/espalier"))
        self.open("", "● live", "far-off")  # without the slash at its end
        self.use_it()

    def test_its_name_is_told_by_an_option(self):
        self.begin("/user/ada/proxy/7078", host="hub.localhost", options=("--web-host", "NAME"))
        self.use_it()

    def test_a_name_that_nobody_told_is_refused(self):
        self.begin("/user/ada/proxy/7078", host="hub.localhost")
        self.open("/", "localhost or by its address")


if __name__ == "__main__":
    unittest.main()
