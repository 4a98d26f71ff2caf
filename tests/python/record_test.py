"""What a notebook keeps of a study: the page that `tuner run` has written, where it can do no harm."""
import html
import os
import pathlib
import re
import tempfile
import unittest
import unittest.mock

from espalier import _display, _record

PAGE = "<!DOCTYPE html>\n<html><head><title>{name}</title></head><body><h1>{name}</h1></body></html>\n"
OWN_RULES = PAGE.replace("<title>", '<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
                                    'content="default-src \'none\'; script-src \'sha256-x\'"><title>')


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="espalier-record-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "report.html"

    def frame(self, text):
        self.path.write_text(text)
        shown = _record.frame(self.path)
        found = re.search(r'<iframe sandbox="([^"]*)" [^>]* srcdoc="([^"]*)"></iframe>$', shown)
        return found[1], html.unescape(found[2])

    def test_a_page_without_rules_runs_nothing_and_reaches_nobody(self):
        sandbox, page = self.frame(PAGE.format(name="mine"))
        self.assertEqual(sandbox, "")
        self.assertIn("<head><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';", page)
        self.assertIn("<h1>mine</h1>", page)

    def test_a_page_with_rules_of_its_own_runs_what_they_allow(self):
        sandbox, page = self.frame(OWN_RULES.format(name="mine"))
        self.assertEqual((sandbox, page), ("allow-scripts", OWN_RULES.format(name="mine")))

    def test_a_name_does_not_leave_the_frame_or_bring_rules(self):
        name = '"></iframe><script>alert(1)</script><meta http-equiv="Content-Security-Policy">'
        sandbox, page = self.frame(PAGE.format(name="x") + name)
        self.assertEqual(sandbox, "", "only rules in the head are the page's own")
        self.assertTrue(page.endswith(name))
        self.assertNotIn("<script>", _record.frame(self.path))

    def test_one_too_large_is_named_alone(self):
        self.path.write_text("x" * (_record._MOST_BYTES + 1))
        self.assertEqual(_record.frame(self.path), f"<p>record: {self.path} (too large to be kept in a notebook)</p>")
        self.assertEqual(_record.frame(self.path.with_name("gone.html")), "")

    def test_the_page_is_a_link_and_no_frame(self):
        shown = _display._page_html(["http://127.0.0.1:40123/", "ssh -N -L 40123:127.0.0.1:40123 ada@10.0.0.5"])
        self.assertEqual(shown, "<p>page: <a href='http://127.0.0.1:40123/' target='_blank' rel='noopener noreferrer'>"
                                "http://127.0.0.1:40123/</a></p><p><code>ssh -N -L 40123:127.0.0.1:40123 ada@10.0.0.5</code></p>")
        self.assertEqual(_display._page_html(()), "")

    def test_on_a_hub_whose_name_the_page_knows_there_is_a_link_below_it(self):
        hub = {"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/"}
        with unittest.mock.patch.dict(os.environ, hub):
            os.environ.pop("ESPALIER_WEB_HOST", None)
            self.assertNotIn("proxy", _display._page_html(["http://127.0.0.1:40123/"]))
        with unittest.mock.patch.dict(os.environ, {**hub, "ESPALIER_WEB_HOST": "hub.example.org"}):
            self.assertIn("<a href='/user/ada/proxy/40123/' ", _display._page_html(["http://127.0.0.1:40123/"]))


if __name__ == "__main__":
    unittest.main()
