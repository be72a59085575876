"""A visitor for the tests in a browser, who signs in, presses buttons, fills in forms and reads."""

from collections.abc import Callable
from typing import Any

from selenium.common import exceptions
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait
from sqlalchemy import Connection

from harness.arena.store import people
from harness.arena.store.people import Person
from tests.board import browser
from tests.waiting import PATIENCE


class Visitor:
    """A person at one browser."""

    def __init__(self, chrome: Chrome, address: str) -> None:
        self.chrome = chrome
        self.address = address
        chrome.delete_all_cookies()
        browser.load_charts(chrome, False)
        browser.resize(chrome, 1280)
        browser.colours(chrome, "light")

    def sign_in(self, connection: Connection, person: Person) -> None:
        self.go("account")
        self.fill("key", people.new_key(connection, person.id, "test") + Keys.ENTER)
        self.sees("Submit a kernel", "h1")

    def go(self, path: str) -> None:
        self.chrome.get(f"{self.address}/{path}")

    def press(self, button: str, near: str = "") -> None:
        """Press a button. near: text of the table row in which the button is."""
        within = f"//tr[contains(., {_quoted(near)})]" if near else ""
        self.find(f"{within}//button[normalize-space()={_quoted(button)}]").click()

    def fill(self, name: str, text: str) -> None:
        self.find(f"//main//*[@name={_quoted(name)}]").send_keys(text)

    def find(self, path: str) -> WebElement:
        try:
            self.until(lambda: self.chrome.find_element(By.XPATH, path))
        except exceptions.TimeoutException:
            raise AssertionError(f"there is no {path} in {self.text()!r}") from None
        return self.chrome.find_element(By.XPATH, path)

    def text(self, selector: str = "main") -> str:
        """Find and read an element in one step, as the page may be replaced between two steps."""
        found = self.chrome.execute_script(
            "return document.querySelector(arguments[0])?.innerText ?? null", selector
        )
        if found is None:
            raise exceptions.NoSuchElementException(f"there is no {selector}")
        return str(found).strip()

    def sees(self, text: str, selector: str = "main") -> None:
        """Wait until an element contains this text."""
        try:
            self.until(lambda: text in self.text(selector))
        except exceptions.TimeoutException:
            raise AssertionError(f"{text!r} is not in {self.text()!r}") from None

    def until(self, holds: Callable[[], Any]) -> None:
        # The page may be replaced while it is looked at.
        replaced = (exceptions.NoSuchElementException, exceptions.StaleElementReferenceException)
        wait = WebDriverWait(self.chrome, PATIENCE, ignored_exceptions=replaced)
        wait.until(lambda _: holds())


def _quoted(text: str) -> str:
    assert '"' not in text
    return f'"{text}"'
