"""The web page as a reader has it: in Chromium, by clicks and by keys, light and dark."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from fencepost.bench.serve import chromium_path, made_results
from fencepost.clusters.hosts.process import harness_mark

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(chromium_path() is None, reason="no Chromium: apt-get install chromium"),
]

ROOT = Path(__file__).parents[3]
PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    made_results(folder, runs=40, nights=4)
    return folder


@pytest.fixture(scope="module")
def url(results: Path) -> Iterator[str]:
    """The page of a server in a process of its own, as the command prints it."""
    words = [sys.executable, "-u", "-m", "fencepost", "serve", "--port", "0"]
    with subprocess.Popen(
        [*words, "--results", str(results)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as server:
        assert server.stdout is not None
        told = server.stdout.readline()
        yield told.split(" at ")[1].split("/ ")[0]
        server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox"], timeout=PATIENCE_MS
        )
        yield found
        found.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield page
    assert wrong == []
    context.close()


def test_clicks_lead_from_the_overview_over_a_night_to_a_report(tab: Any, url: str) -> None:
    tab.goto(f"{url}/")
    tab.get_by_role("region", name="Nights").get_by_role("link").first.click()
    assert tab.get_by_role("heading", level=1).inner_text().startswith("Night nightly ")
    tab.get_by_role("link", name="run 10", exact=False).click()
    assert tab.locator(".answer .word").inner_text().lower() in ("valid", "invalid")
    tab.get_by_role("link", name="Report", exact=True).click()
    assert tab.get_by_role("heading", level=1).inner_text() == "The report"
    assert tab.evaluate("self.origin") == "null", "a stored page has our origin"
    tab.go_back()
    tab.get_by_role("navigation", name="Main").get_by_role("link", name="Scenarios").click()
    tab.get_by_role("link", name="storm", exact=True).click()
    assert tab.get_by_role("heading", level=1).inner_text() == "storm"


def test_keys_alone_reach_a_run(tab: Any, url: str) -> None:
    tab.goto(f"{url}/runs")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.keyboard.press("Enter")
    for _ in range(30):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.textContent").startswith("storm/"):
            break
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is not seen"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/runs/storm/*")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_in_light_and_dark_and_fit_a_phone(
    browser: Any, url: str, scheme: str
) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    tab = context.new_page()
    for target in ("/", "/nights", "/nights/nightly", "/scenarios/storm", "/runs/storm/latest"):
        tab.goto(url + target)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, target
        ground, ink = tab.evaluate(
            "[getComputedStyle(document.documentElement).backgroundColor,"
            " getComputedStyle(document.body).color]"
            ".map(c => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0))"
        )
        assert (ink < ground) == (scheme == "light")
        assert abs(ink - ground) > 300
        bare = tab.locator("th:not([scope]), img:not([alt]), svg[role=img]:not([aria-label])")
        assert bare.count() == 0
        assert tab.locator("main, nav, h1").count() >= 3
    context.close()


def test_a_night_under_way_goes_on_before_the_readers_eyes(
    tab: Any, url: str, results: Path
) -> None:
    path = max(results.glob("nights/*/*/night.json"))
    whole = json.loads(path.read_bytes())
    under_way = {"runs": whole["runs"][:-1], "ended_at": None, "harness": harness_mark()}
    path.write_text(json.dumps({**whole, **under_way}))
    tab.goto(f"{url}/nights/nightly/{path.parent.name}")
    assert "under way" in tab.locator("#progress").inner_text()
    tab.get_by_role("link", name="run 3", exact=False).focus()
    path.write_text(json.dumps(whole))
    tab.locator(f"#run-{len(whole['runs'])}").wait_for()
    tab.locator("#progress:not([data-live])").wait_for(state="attached")
    assert tab.evaluate("document.activeElement.closest('tr').id") == "run-3", "focus was lost"


def test_the_scripts_of_these_pages_are_small() -> None:
    scripts = (ROOT / "report" / "serve").rglob("*.js")
    assert sum(path.stat().st_size for path in scripts) <= 200_000
