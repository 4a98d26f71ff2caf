"""What tests of the pages of studies and trials share."""
import urllib.parse

from selenium.webdriver.common.by import By

from fixture_world import World
from page_case import PageTest

TABLE = "table.virtual"


class StudyTest(PageTest):
    def open_study(self, query="", world=None, *texts):
        self.serve(world or World())
        self.open("/ui/studies/1" + query, "● live", *texts)
        self.one(TABLE)
        self.wait_no_text("reading …")
        return self.fixture

    def query(self):
        address = urllib.parse.urlsplit(self.browser.current_url)
        return {key: values[0] for key, values in urllib.parse.parse_qs(address.query).items()}

    def rows(self):
        """Texts of the rows that are drawn."""
        return self.browser.execute_script("return [...document.querySelectorAll('table.virtual tbody tr[aria-rowindex]')].map(r => r.innerText)")

    def numbers(self):
        """Of trials in the rows that are drawn."""
        return [int(row.split()[0]) for row in self.rows()]

    def count(self):
        return int(self.one(TABLE).get_attribute("aria-rowcount")) - 1

    def asked(self):
        """A list of what is asked for below /api/view from now on: (path, query)."""
        asked, view = [], self.fixture.view
        self.fixture.view = lambda path, query: (asked.append((path, query)), view(path, query))[1]
        return asked

    def path(self):
        return urllib.parse.urlsplit(self.browser.current_url).path

    def row(self, number):
        return self.wait_for(lambda: next((row for row in self.all("table.virtual tbody tr[aria-rowindex]")
                                           if row.find_elements(By.LINK_TEXT, str(number))), None), f"trial {number}")
