"""Debian's Chromium, headless, for the tests of the site, with any window, light or dark."""

import importlib.resources
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

from tests.waiting import PATIENCE

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
MISSING = (
    "no Chromium: `apt-get install chromium chromium-driver` gives both"
    if not (CHROMIUM and DRIVER)
    else ""
)
"""The reason why the tests of the site cannot run here; empty if they can."""

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """A browser with a fresh profile that logs every request and every console message."""
    options = ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = Chrome(options, Service(DRIVER))
    driver.set_script_timeout(PATIENCE)
    try:
        yield driver
    finally:
        driver.quit()


def load_charts(driver: Chrome, wanted: bool) -> None:
    """Let the next pages load the chart library, which takes most of the time of a page, or not."""
    driver.execute_cdp_cmd("Network.enable", {})
    blocked = [] if wanted else ["*plotly.min.js"]
    driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": blocked})


def await_charts(driver: Chrome, wanted: bool = True) -> None:
    """Wait until the page is complete, with its charts if it is to have any."""
    drawn = "[...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('svg'))"
    ready = f"return document.readyState === 'complete' && {drawn if wanted else 'true'}"
    WebDriverWait(driver, 20).until(lambda _: driver.execute_script(ready))


def resize(driver: Chrome, width: int, height: int = 900) -> None:
    """Set the size of the viewport exactly. Below 640 pixels it is that of a phone."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 640},
    )


def colours(driver: Chrome, scheme: Literal["light", "dark"]) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )


def barriers(driver: Chrome, *rules: str) -> list[object]:
    """Return what axe finds on the page by these rules, or by all, and at which elements.

    Only violations are listed: listing the elements that pass would take as long again. A chart is
    one image with a label, and so its parts are left out; so are the later rows of a long ranking.
    """
    if not driver.execute_script("return 'axe' in window"):
        axe = importlib.resources.files("axe_core_python") / "axe.min.js"
        driver.execute_script(axe.read_text(encoding="utf-8"))
    found = driver.execute_async_script(
        "const [rules, done] = arguments, exclude = ['.chart svg', '#ranking tr:nth-child(n+9)'];"
        "axe.run({exclude}, {"
        "resultTypes: ['violations'], ...(rules.length ? {runOnly: rules} : {})}).then(done)",
        rules,
    )
    assert found["passes"]
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in found["violations"]
    ]


def requests(driver: Chrome) -> list[str]:
    """Return every address that was requested since the last call."""
    messages: list[dict[str, Any]] = [
        json.loads(line["message"])["message"]
        for line in driver.get_log("performance")  # type: ignore[no-untyped-call]
    ]
    return [
        str(message["params"]["request"]["url"])
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def complaints(driver: Chrome) -> list[str]:
    """Return the console's errors and warnings since the last call, such as blocked scripts."""
    return [str(line["message"]) for line in driver.get_log("browser")]  # type: ignore[no-untyped-call]
