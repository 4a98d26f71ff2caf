"""Where the page of a service is, as the verbs say it, and that a browser is started for it and never waited for."""
import http.client
import json
import os
import pwd
import re
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import TunerTest, wait_for

NOWHERE = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": ""}


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


class PageAddress(TunerTest):
    def waiting_study(self, name="e2e"):
        """Of one trial that goes on until go()."""
        command = self.write("trial.sh", f"#!/bin/sh\nuntil [ -e {self.dir}/go ]; do sleep 0.05; done\n"
                                         "tuner tell --final --value 0.5\n", 0o755)
        return self.study([command], name=name, trials=1)

    def run_study(self, *options, name="e2e", env=None):
        study = self.waiting_study(name)
        return self.start("run", study, "--dir", self.dir / name, "--slots", 1, *options, env={**NOWHERE, **(env or {})})

    def page_of(self, process):
        def told():
            self.assertIsNone(process.poll(), self.output(process))
            return re.search(r"^ {2}page {6}(http://127\.0\.0\.1:(\d+)/)((?:\n {12}\S.*)*)\n", self.output(process), re.MULTILINE)
        return wait_for(told, "the run to print its page's address")

    def test_a_run_has_its_page_at_the_address_that_it_prints(self):
        first = self.run_study()
        page = self.page_of(first)
        status, kind, text = get(page[1])
        self.assertEqual((status, kind.split(";")[0]), (200, "text/html"))
        self.assertIn("Espalier", text)
        self.assertEqual(page[3], "", "nobody came over SSH")
        self.assertEqual(json.loads(get(page[1] + "api/pool")[2])["page"], page[1])
        self.assertEqual(json.loads((self.dir / "e2e/service.json").read_text())["http"], f"127.0.0.1:{page[2]}")
        second = self.run_study(name="other")
        other = self.page_of(second)
        self.assertNotEqual(other[2], page[2], "two runs have a port each")
        self.assertEqual(get(other[1])[0], 200)
        self.go()
        self.finish(first)
        self.finish(second)

    def test_a_named_port_is_taken(self):
        address = self.held_address()
        process = self.run_study("--http", address)
        self.assertEqual(self.page_of(process)[1], f"http://{address}/")
        self.go()
        self.finish(process)

    def test_over_ssh_it_says_what_brings_the_port(self):
        here = self.run_study(env={"SSH_CONNECTION": "127.0.0.1 50000 127.0.0.1 2222"})
        page = self.page_of(here)
        port, user = page[2], pwd.getpwuid(os.getuid()).pw_name
        self.assertEqual(page[3], "\n            has the same address on your own machine, where you enter:"
                                  f"\n            ssh -N -L {port}:127.0.0.1:{port} -p 2222 {user}@127.0.0.1")
        behind = self.run_study(name="behind", env={"SSH_CONNECTION": "192.0.2.7 50000 192.0.2.5 22"})
        page = self.page_of(behind)
        self.assertRegex(page[3], rf"ssh -N -L {page[2]}:127\.0\.0\.1:{page[2]} -J {user}@192\.0\.2\.5 {user}@\S+$")
        self.go()
        self.finish(here)
        self.finish(behind)

    def test_a_browser_is_started_and_not_waited_for(self):
        browser = self.write("browser.sh", f"#!/bin/sh\necho $$ > {self.dir}/pid\necho \"$1\" > {self.dir}/opened.new\n"
                                           f"mv {self.dir}/opened.new {self.dir}/opened\nexec sleep 600\n", 0o755)
        process = self.run_study("--open", "--quiet", env={"BROWSER": f"no-such-browser:{browser} %s"})
        wait_for((self.dir / "opened").exists, "the browser to be started")
        opened = (self.dir / "opened").read_text().strip()
        try:
            self.assertEqual(get(opened)[0], 200)
            self.assertNotIn("page", self.output(process))
            self.go()
            self.finish(process)
            os.kill(int((self.dir / "pid").read_text()), 0)  # it outlives the run
        finally:
            os.kill(int((self.dir / "pid").read_text()), 9)

    def test_where_there_is_no_browser_the_run_goes_on(self):
        self.go()
        for browser in ("", "no-such-browser"):
            with self.subTest(browser):
                process = self.run_study("--open", "--fresh", env={"BROWSER": browser})
                self.finish(process)
                self.assertIn("is not opened in a browser: ", self.output(process))

    def test_open_finds_the_page_of_a_run(self):
        run = self.run_study()
        page = self.page_of(run)[1]
        where = ("--dir", self.dir / "e2e")
        self.assertEqual(self.run_tuner("open", "--print", *where, env=NOWHERE).stdout, page + "\n")
        opened = self.run_tuner("open", "e2e", *where, env={**NOWHERE, "BROWSER": "true"})
        self.assertEqual((opened.stdout, opened.stderr), (page + "ui/studies/1\n", ""))
        self.assertIn("is not opened", self.run_tuner("open", *where, env=NOWHERE, code=1).stderr)
        refused = self.run_tuner("open", "nosuch", *where, env=NOWHERE, code=4).stderr
        self.assertIn('there is no study "nosuch"', refused)
        self.go()
        self.finish(run)

    def test_a_service_says_where_its_page_is(self):
        self.serve(self.dir / "pool.db")
        told = self.output(self.processes[-1])
        self.assertIn(f"\npage http://{self.http}/\n", told)
        self.assertEqual(self.run_tuner("open", "--print", "--service", self.grpc, env=NOWHERE).stdout, f"http://{self.http}/\n")

    def test_a_service_without_http_has_none(self):
        self.grpc = self.held_address()
        service = self.start("serve", "--grpc", self.grpc, "--db", self.dir / "pool.db")
        self.wait_service(service)
        self.assertIn("\npage none: it comes with --http HOST:PORT\n", self.output(service))
        self.assertIn("has no page", self.run_tuner("open", "--service", self.grpc, code=2).stderr)

    def serve_to_those_with_a_token(self):
        """The service, and the file with its token."""
        token = self.write("token", "a-token-of-the-test-that-is-long-enough\n", 0o600)
        self.grpc, self.http = self.held_address(), self.held_address()
        service = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.dir / "pool.db",
                             "--token-file", token)
        wait_for(lambda: "\ndatabase " in self.output(service), "the service to say where it is")
        return service, token

    def test_a_page_that_needs_a_token_says_so(self):
        service, token = self.serve_to_those_with_a_token()
        page = f"http://{self.http}/"
        self.assertIn(f"\npage {page}\n     asks for a token once: ", self.output(service))
        self.assertNotIn("a-token-of-the-test", self.output(service))
        found = self.run_tuner("open", "--print", "--service", self.grpc, "--token-file", token, env=NOWHERE)
        self.assertEqual(found.stdout, page + "\n")
        self.assertIn("asks for a token once", found.stderr)
        with urllib.request.urlopen(found.stdout.strip()) as answer:
            self.assertTrue(answer.url.startswith(page + "login?"), answer.url)
            self.assertEqual(answer.status, 200)

    def test_open_hands_the_browser_a_code_that_is_good_once(self):
        service, token = self.serve_to_those_with_a_token()
        browser = self.write("browser.sh", f"#!/bin/sh\necho \"$1\" > {self.dir}/opened.new\n"
                                           f"mv {self.dir}/opened.new {self.dir}/opened\n", 0o755)
        where = ("--service", self.grpc, "--token-file", token)
        said = self.run_tuner("open", *where, env={**NOWHERE, "BROWSER": str(browser)})
        self.assertEqual((said.stdout, said.stderr), (f"http://{self.http}/\n", ""))
        wait_for((self.dir / "opened").exists, "the browser to be started")
        address, _, code = (self.dir / "opened").read_text().strip().partition("#code=")
        self.assertEqual(address, f"http://{self.http}/login?to=")
        self.assertRegex(code, "^[0-9a-f]{64}$")

        def begin(shown):
            connection = http.client.HTTPConnection(self.http)
            connection.request("POST", "/api/session", headers={"Authorization": shown, "Origin": f"http://{self.http}"})
            answer = connection.getresponse()
            told = (answer.status, answer.headers.get("Set-Cookie", "").partition(";")[0], answer.read().decode())
            connection.close()
            return told
        status, cookie, _ = begin(f"Espalier-Code {code}")
        self.assertEqual(status, 200)
        self.assertEqual(get(f"http://{self.http}/api/pool", Cookie=cookie)[0], 200)
        status, cookie, why = begin(f"Espalier-Code {code}")
        self.assertEqual((status, cookie), (401, ""))
        self.assertIn("this code begins no session", why)
        self.assertNotIn(code, self.output(service))

    def test_a_proxy_is_known_by_the_names_that_were_told(self):
        self.serve(self.dir / "pool.db", options=("--web-host", "hub.example.org", "--web-host", "hub.example.org:8443",
                                                  "--web-prefix", "/user/ada/tuner"))

        def status(path, method="GET", **headers):
            connection = http.client.HTTPConnection(self.http)
            connection.request(method, path, "{}" if method == "POST" else None, headers)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        for path in ("/api/pool", "/user/ada/tuner/api/pool"):
            self.assertEqual(status(path, Host="hub.example.org"), 200, path)
            self.assertEqual(status(path, Host="hub.example.org:8443"), 200, path)
            self.assertEqual(status(path, Host="localhost:7078"), 200, path)
            self.assertEqual(status(path, Host="evil.example.org"), 403, path)
            self.assertEqual(status(path, Host="hub.example.org", Origin="https://evil.example.org"), 403, path)
        self.assertEqual(status("/user/ada/other/api/pool"), 404)
        stop = "/user/ada/tuner/api/studies/none/stop"
        self.assertEqual(status(stop, "POST", Host="hub.example.org", Origin="https://hub.example.org"), 404, "no such study")
        self.assertEqual(status(stop, "POST", Host=self.http, Origin="https://hub.example.org"), 404,
                         "a proxy may call the service by its address")
        self.assertEqual(status(stop, "POST", Host=self.http, Origin="https://evil.example.org"), 403)
        # Browsers ask for the files at the address that they make of the page's own.
        for page, below in (("/user/ada/tuner", "/user/ada/tuner"), ("/user/ada/tuner/", "/user/ada/tuner"),
                            ("/user/ada/tuner/ui/studies/3", "/user/ada/tuner"), ("/ui/studies/3/trials/1", ""), ("/", "")):
            files = re.findall(r'(?:src|href)="([^"]*ui-assets/[^"]+)"', get(f"http://{self.http}{page}")[2])
            self.assertEqual(len(files), 2, page)
            for file in files:
                asked = urllib.parse.urljoin(f"http://{self.http}{page}", file)
                self.assertTrue(asked.startswith(f"http://{self.http}{below}/ui-assets/"), asked)
                self.assertEqual(get(asked)[0], 200)

    def test_the_environment_may_name_the_proxy(self):
        run = self.run_study(env={"ESPALIER_WEB_HOST": "hub.example.org,other.example.org"})
        pool = self.page_of(run)[1] + "api/pool"
        for host, want in (("other.example.org", 200), ("third.example.org", 403)):
            try:
                with urllib.request.urlopen(urllib.request.Request(pool, headers={"Host": host})) as answer:
                    self.assertEqual(answer.status, want)
            except urllib.error.HTTPError as error:
                self.assertEqual(error.code, want, host)
        self.go()
        self.finish(run)

    def test_what_is_no_host_or_path_is_refused(self):
        for option, value, want in (("--web-host", "https://hub.example.org", "HOST or HOST:PORT"),
                                    ("--web-prefix", "espalier", "begins with a slash"),
                                    ("--web-prefix", "/espalier/", "does not end"),
                                    ("--web-prefix", '/a"b', "such as /espalier")):
            with self.subTest(value):
                refused = self.run_tuner("serve", "--db", self.dir / "pool.db", option, value, code=2).stderr
                self.assertIn(f'{option} "{value}": must be', refused)
                self.assertIn(want, refused)


if __name__ == "__main__":
    unittest.main()
