"""Tests of the site in a browser: from disk, without a network, with a keyboard, on a phone."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.site import Site
from harness.protocol.report import Badge
from tests.board import browser, factory
from tests.waiting import eventually

if browser.MISSING:
    pytest.skip(browser.MISSING, allow_module_level=True)

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

KERNELS = 120
LONG = "W" * 60
MARKUP = "<img src=x onerror=alert(1)><b>bold<b>"
EMOJI = "🚀" * 30
NAMES = [MARKUP, EMOJI, LONG, "'; DROP TABLE entries; --", "{{ 7 * 7 }}"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a site of 120 kernels, the best with hostile names, and some submissions' pages."""
    named = [
        factory.report(name, name[::-1], 1.9 - 0.1 * place, day=place, rounds=8)
        for place, name in enumerate(NAMES)
    ]
    shown = [Document.of(report) for report in (*named, factory.rejected(), factory.wrong())]
    documents = {document.id: document for document in shown}
    rows = [Entry.of(each.report, each.id)._replace(verified=True) for each in shown]
    others = [
        factory.like(
            rows[0],
            f"kernel {number}",
            f"author {number % 7}",
            0.9 - 0.001 * number,
            day=number / 10,
            identity=f"kernel {number}",
        )._replace(
            cores=(Badge.TENSOR_CORES if number % 2 else Badge.CUDA_CORES).value,
            accuracy="ABC"[number % 3],
        )
        for number in range(KERNELS - len(NAMES))
    ]
    folder = tmp_path_factory.mktemp("leaderboard") / "site"
    written = Site(folder, rows).write_entries(documents.__getitem__)
    assert not any(written)
    Site(folder, [*rows, *others]).write_boards()
    return folder


@pytest.fixture
def board(chrome: Chrome, site: Path) -> Chrome:
    return opened(chrome, site / "index.html", charts=True)


@pytest.fixture
def table(chrome: Chrome, site: Path) -> Chrome:
    """The board in a browser, without its charts."""
    return opened(chrome, site / "index.html")


def opened(
    chrome: Chrome, page: Path, query: str = "", charts: bool = False, width: int = 1280
) -> Chrome:
    """Open a page of the site in light colours, and wait for its charts if it is to have any."""
    browser.load_charts(chrome, charts)
    browser.resize(chrome, width)
    browser.colours(chrome, "light")
    chrome.get(page.as_uri() + query)
    browser.await_charts(chrome, charts)
    return chrome


def page_of(site: Path, verdict: str) -> Path:
    """Return a submission's page with this verdict."""
    return next(
        page
        for page in sorted((site / "entries").glob("*.html"))
        if f"<strong>{verdict}</strong>" in page.read_text(encoding="utf-8")
    )


def rows(chrome: Chrome) -> list[WebElement]:
    return chrome.find_elements(By.CSS_SELECTOR, "#ranking tbody tr")


def column(chrome: Chrome, name: str) -> list[str]:
    """Return the visible cells of a column of the ranking."""
    texts: list[str] = chrome.execute_script(
        "return [...document.querySelectorAll(`#ranking tbody td.${arguments[0]}`)]"
        ".map((cell) => (cell.querySelector('bdi') ?? cell).textContent)",
        name,
    )
    return texts


def heading(chrome: Chrome, name: str) -> WebElement:
    return chrome.find_element(By.CSS_SELECTOR, f"#ranking th.{name}")


def status(chrome: Chrome) -> str:
    return chrome.find_element(By.CSS_SELECTOR, "[data-pager-for=ranking] [role=status]").text


def fill(chrome: Chrome, name: str, value: str) -> None:
    chrome.execute_script(
        "arguments[0].value = arguments[1];"
        "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        chrome.find_element(By.NAME, name),
        value,
    )


@pytest.mark.parametrize(
    "which", ["index.html", "runs.html", "accepted", "memory-error", "wrong-answer"]
)
def test_pages_open_from_disk_pass_axe_and_fit_every_window(
    chrome: Chrome, site: Path, which: str
) -> None:
    """They request nothing from a network, and the console has no errors or warnings."""
    chrome.get("about:blank")
    browser.requests(chrome), browser.complaints(chrome)
    opened(chrome, site / which if which.endswith("html") else page_of(site, which), charts=True)
    asked = browser.requests(chrome)
    assert asked
    assert {address.partition(":")[0] for address in asked} <= {"file", "data"}
    assert browser.complaints(chrome) == []
    for width in (1280, 320):
        browser.resize(chrome, width)
        # A chart is drawn again some time after the window has changed.
        eventually(partial(fits, chrome, width), f"{which} fits a window of {width} pixels")
    assert browser.barriers(chrome) == []
    browser.resize(chrome, 1280)
    browser.colours(chrome, "dark")
    assert browser.barriers(chrome, "color-contrast") == []


def fits(chrome: Chrome, width: int) -> bool:
    """Return whether no part of the page lies to the right of the window."""
    outside = chrome.execute_script(
        "return [...document.querySelectorAll('main *')]"
        ".filter((one) => !one.closest('.scroll, svg, .hidden, .js-plotly-plot'))"
        ".filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
        ".map((one) => one.outerHTML.slice(0, 80))"
    )
    whole = chrome.execute_script("return document.documentElement.scrollWidth")
    return not outside and int(whole) <= width


def test_the_ranking_has_pages_and_is_sorted_by_keyboard(table: Chrome) -> None:
    assert len(rows(table)) == 100 and column(table, "rank")[:3] == ["1", "2", "3"]
    assert heading(table, "rank").get_attribute("aria-sort") == "ascending"
    table.find_element(By.XPATH, "//button[.='Next']").click()
    assert status(table) == "101 to 120 of 120 kernels"
    assert column(table, "kernel")[0] == f"kernel {100 - len(NAMES)}"
    fill(table, "find", "kernel 50")
    assert column(table, "kernel") == ["kernel 50"], "also from another page"
    fill(table, "find", "")
    button = heading(table, "kernel").find_element(By.TAG_NAME, "button")
    table.execute_script("arguments[0].focus()", button)
    for key, order in ((Keys.ENTER, "ascending"), (Keys.SPACE, "descending")):
        table.switch_to.active_element.send_keys(key)
        assert heading(table, "kernel").get_attribute("aria-sort") == order
        assert heading(table, "rank").get_attribute("aria-sort") is None
    for name, best_first in (("score", True), ("ms", False)):
        for reverse in (best_first, not best_first):
            heading(table, name).find_element(By.TAG_NAME, "button").click()
            values = [float(text) for text in column(table, name)]
            assert values == sorted(values, reverse=reverse), (name, reverse)


def test_the_tab_key_reaches_everything(table: Chrome) -> None:
    reached = []
    for _ in range(30):
        table.switch_to.active_element.send_keys(Keys.TAB)
        focused = table.switch_to.active_element
        reached.append(focused.get_attribute("name") or focused.text)
    assert reached[0] == "Skip to the content"
    for name in ("find", "cores", "launch", "since", "Rank", "Score", MARKUP):
        assert any(one.startswith(name) for one in reached), name


def test_chosen_kernels_are_ranked_among_themselves(table: Chrome, site: Path) -> None:
    Select(table.find_element(By.NAME, "cores")).select_by_visible_text("tensor cores")
    assert column(table, "rank")[0] == "1"
    assert column(table, "kernel")[:2] == ["kernel 1", "kernel 3"]
    assert "chosen from 120" in status(table)
    opened(table, site / "index.html", "?cores=tensor-cores", charts=True)
    assert column(table, "kernel")[:2] == ["kernel 1", "kernel 3"]
    bars = table.execute_script(
        "return document.querySelector('[data-chart=scores] .chart').data.map((t) => t.name)"
    )
    assert bars == ["tensor cores"]


def test_finding_and_dates_choose_what_is_shown(table: Chrome) -> None:
    fill(table, "find", "author 3")
    assert set(column(table, "author")) == {"author 3"}
    assert column(table, "rank")[0] != "1"
    fill(table, "find", "")
    fill(table, "since", "2026-01-08")
    assert 0 < len(rows(table)) < 100
    assert all(graded >= "2026-01-08" for graded in column(table, "graded"))
    fill(table, "accuracy", "B")
    assert {*column(table, "accuracy")} == {"A", "B"}
    fill(table, "find", "no such kernel")
    assert status(table) == "0 kernels, chosen from 120"


def test_hostile_names_are_shown_as_they_are(board: Chrome) -> None:
    """The chart of them has intervals, and a line at cuBLAS."""
    assert column(board, "kernel")[: len(NAMES)] == NAMES
    assert board.execute_script("return document.querySelectorAll('main img, main b').length") == 0
    labels = board.execute_script(
        "return [...document.querySelectorAll('[data-chart=scores] .ytick text')]"
        ".map((text) => text.textContent)"
    )
    assert labels[0].startswith("<img src=x")
    chart: dict[str, Any] = board.execute_script(
        "const {data, layout} = document.querySelector('[data-chart=scores] .chart');"
        "return {bars: data.flatMap((t) => [...t.x]), errors: data.flatMap((t) => t.error_x.array),"
        " line: layout.shapes[0].x0, axis: layout.xaxis.type}"
    )
    assert sorted(chart["bars"], reverse=True)[:2] == pytest.approx([1.9, 1.8])
    assert len(chart["bars"]) == 30
    assert chart["errors"] == pytest.approx([0.002] * 30)
    assert (chart["line"], chart["axis"]) == (1, "log")
    assert board.find_elements(By.CSS_SELECTOR, "[data-chart=scores] .errorbar")


def test_a_phone_shows_rank_1_first(chrome: Chrome, site: Path) -> None:
    opened(chrome, site / "index.html", width=390)
    tops = chrome.execute_script(
        "return ['#ranking tbody tr', '[data-chart=scores]'].map("
        "(one) => document.querySelector(one).getBoundingClientRect().top)"
    )
    assert tops[0] < 844 and tops[0] < tops[1], "below the first screen of a phone"


def test_colours_follow_the_preferred_scheme(board: Chrome) -> None:
    def colours() -> tuple[str, str]:
        page, bar = board.execute_script(
            "return [getComputedStyle(document.documentElement).backgroundColor,"
            " document.querySelector('[data-chart=scores] .chart').data[0].marker.color]"
        )
        return page, bar

    light = colours()
    browser.colours(board, "dark")
    WebDriverWait(board, 10).until(lambda _: colours()[1] != light[1])
    assert colours()[0] != light[0]


def test_charts_show_the_data_of_the_tables(chrome: Chrome, site: Path) -> None:
    opened(chrome, page_of(site, "accepted"), charts=True)
    charts: dict[str, list[list[float]]] = chrome.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('figure[data-chart]')].map("
        "(figure) => [figure.dataset.chart,"
        " figure.querySelector('.chart').data.map((trace) => [...trace.x])]))"
    )
    assert charts == {"rounds": [[*range(1, 9)]] * 3}


def test_the_table_is_complete_without_scripts(chrome: Chrome, site: Path) -> None:
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chrome.get((site / "index.html").as_uri())
        assert len(rows(chrome)) == KERNELS
    finally:
        chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
