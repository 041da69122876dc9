"""The timeline in the system's Chromium: what a reader does there, by mouse and by keyboard."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from story_runs import HELD_AT, STORY
from synthetic_run import write_run

from fencepost.bench.timeline import served

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    results = tmp_path_factory.mktemp("results")
    run = write_run(results, STORY)
    with served(results) as address:
        yield f"{address}/runs/{run.root.parent.name}/{run.root.name}/timeline"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, site: str) -> Iterator[Any]:
    page = browser.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    shown(page, site)
    yield page
    page.close()
    assert wrong == []


def shown(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("[data-ready=events]", timeout=60_000)


def view(page: Any) -> tuple[float, float]:
    found = page.evaluate("() => window.fencepostTimeline.view")
    return found["from"] / 1e9, found["to"] / 1e9


def text(page: Any, part: str) -> str:
    return str(page.text_content(f"[data-part={part}]"))


def test_a_click_on_an_event_shows_its_fields(page: Any) -> None:
    place = page.evaluate(
        f"""() => {{ const t = window.fencepostTimeline; t.look({HELD_AT - 1}e9, {HELD_AT + 1}e9);
        t.draw(); const row = t.rows.find((one) => one.kind === "link");
        return {{ x: t.picture.x({HELD_AT}e9) + 3, y: row.y + row.height / 2 }}; }}"""
    )
    page.click("[data-part=canvas]", position=place)
    page.wait_for_selector("[data-part=fields] table", timeout=20_000)
    assert "AlterPartition request" in text(page, "fields")
    assert "join" in text(page, "fields")
    assert "released" in text(page, "said")


def test_a_filter_reduces_what_is_shown(page: Any) -> None:
    count = "() => window.fencepostTimeline.events.all.length"
    every = page.evaluate(count)
    page.fill("[data-part=filter]", "AlterPartition is:request")
    page.press("[data-part=filter]", "Enter")
    assert page.evaluate(count) == 2 < every
    page.fill("[data-part=filter]", "NoSuchApi")
    page.press("[data-part=filter]", "Enter")
    assert "NoSuchApi" in text(page, "status")


def test_x_before_y_is_a_list_that_leads_to_its_moments(page: Any) -> None:
    page.fill(
        "[data-part=filter]", "AlterPartition is:released before BrokerRegistration within 9s"
    )
    page.press("[data-part=filter]", "Enter")
    pairs = page.locator("[data-part=results] li button")
    assert pairs.count() == 1
    assert "6.731 s AlterPartition" in str(pairs.first.text_content())
    pairs.first.click()
    begin, end = view(page)
    assert begin < HELD_AT < end
    page.fill(
        "[data-part=filter]", "AlterPartition is:released before BrokerRegistration within 1s"
    )
    page.press("[data-part=filter]", "Enter")
    assert pairs.count() == 0


def test_a_link_leads_to_its_moment(page: Any, site: str) -> None:
    page.goto("about:blank")
    shown(page, f"{site}#t=6.731&span=2&filter=AlterPartition")
    assert view(page) == pytest.approx((5.731, 7.731), abs=1e-3)
    assert page.input_value("[data-part=filter]") == "AlterPartition"
    page.focus("[data-part=stage]")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => !location.hash.includes('t=6.731')", timeout=5_000)


def test_the_keyboard_does_what_the_mouse_does(page: Any) -> None:
    page.focus("[data-part=stage]")
    begin, end = view(page)
    page.keyboard.press("+")
    nearer = view(page)
    assert nearer[1] - nearer[0] < end - begin
    page.keyboard.press("ArrowRight")
    assert view(page)[0] > nearer[0]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    first = text(page, "said")
    page.keyboard.press("n")
    assert text(page, "said") != first
    page.keyboard.press("p")
    assert text(page, "said") == first
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.dataset.part") == "details"
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.dataset.part") == "filter"


def test_a_pin_leads_to_its_moment(page: Any) -> None:
    pin = page.locator("[data-part=pins] button", has_text="hold").first
    at = float(str(pin.locator(".time").text_content()).removesuffix(" s"))
    pin.click()
    begin, end = view(page)
    assert begin < at < end
    assert pin.get_attribute("aria-current") == "true"


def test_two_runs_are_compared_side_by_side(browser: Any, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, STORY) for name in ("a", "b")]
    names = []
    for name, run in zip(("a", "b"), runs, strict=True):
        (tmp_path / "all" / "smoke").mkdir(parents=True, exist_ok=True)
        run.root.rename(tmp_path / "all" / "smoke" / name)
        names.append(f"smoke/{name}")
    with served(tmp_path / "all") as address:
        page = browser.new_page()
        page.goto(f"{address}/compare?a={names[0]}&b={names[1]}")
        assert "No difference" in str(page.text_content("#difference"))
        page.goto(f"{address}/compare?a=smoke/a&b=smoke/../../x")
        assert "scenario/run" in str(page.text_content("body"))
        page.close()
