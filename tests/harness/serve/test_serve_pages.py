"""The pages: what they say of runs and nights in any state, and what of them may not break one."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from asked import PORT, ask
from manifests import mark_of_a_reused_pid
from starlette.types import ASGIApp

from fencepost.bench.serve import made_results
from fencepost.clusters.hosts.process import harness_mark
from fencepost.harness.kept.kept_cluster import KeptCluster, write_kept
from fencepost.harness.serve.archive import ResultsArchive
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.report.serve.app import application


def page_over(results: Path) -> ASGIApp:
    return application(ResultsArchive(results), results, port=PORT)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    made_results(folder, runs=20, nights=4)
    return folder


@pytest.fixture
def results(tmp_path: Path, made: Path) -> Path:
    shutil.copytree(made, tmp_path / "results")
    return tmp_path / "results"


def newest(results: Path) -> Path:
    return max((results / "storm").glob("2*"), key=lambda root: root.name)


def night_file(results: Path) -> Path:
    return max(results.glob("nights/*/*/night.json"))


def test_without_any_result_it_says_how_to_make_one(tmp_path: Path) -> None:
    for target in ("/", "/nights", "/scenarios", "/runs"):
        answer = ask(page_over(tmp_path), target)
        assert answer.status == 200
    assert "fencepost run smoke" in ask(page_over(tmp_path), "/").text


def test_the_overview_leads_to_nights_runs_and_scenarios(results: Path) -> None:
    told = ask(page_over(results), "/").text
    assert "20 runs of 1 scenarios, 4 nights" in told
    assert f'href="/nights/nightly/{night_file(results).parent.name}"' in told
    assert f'href="/runs/storm/{newest(results).name}"' in told
    assert 'href="/scenarios/storm"' in told


def test_a_run_says_its_verdict_what_was_found_and_how_to_repeat_it(results: Path) -> None:
    root = next(
        path.parent
        for path in sorted(results.glob("storm/2*/verdict.json"))
        if json.loads(path.read_bytes())["validity"] == "invalid"
    )
    told = ask(page_over(results), f"/runs/storm/{root.name}").text
    assert '<p class="word">invalid</p>' in told
    assert "storm/lost-write" in told
    assert "fencepost run storm --seed" in told
    assert f'href="/files/storm/{root.name}/report.html"' in told
    assert f'href="/files/storm/{root.name}/verdict.json" download' in told


def test_a_run_says_that_its_cluster_is_kept_running(results: Path) -> None:
    run = RunDirectory(newest(results))
    until = "2026-11-29T08:00:00+00:00"
    kept = KeptCluster(holder=harness_mark(), until=until, directories={}, found_at={})
    write_kept(run, kept)
    told = ask(page_over(results), f"/runs/storm/{run.root.name}").text
    assert f"fencepost stop storm/{run.root.name}" in told
    assert "kept running until 2026-11-29 08:00:00 UTC" in ask(page_over(results), "/runs").text
    write_kept(run, replace(kept, holder=mark_of_a_reused_pid()))
    assert "kept running" not in ask(page_over(results), "/runs").text


def test_latest_leads_to_the_newest_run(results: Path) -> None:
    answer = ask(page_over(results), "/runs/storm/latest")
    assert answer.status == 307
    assert answer.headers["location"] == f"/runs/storm/{newest(results).name}"


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("manifest.json", None, "not readable"),
        ("manifest.json", b"", "not readable"),
        ("manifest.json", b'{"format_version": 1, "run', "not readable"),
        ("manifest.json", b"[]", "not readable"),
        ("manifest.json", b'{"format_version": 99}', "not readable"),
        ("manifest.json", b"[" * 100_000, "not readable"),
        ("forensics.json", b"[" * 100_000, "valid"),
        ("verdict.json", None, "not checked"),
        ("verdict.json", b"", "not checked"),
        ("verdict.json", b'{"validity": "vali', "not checked"),
        ("verdict.json", b'{"validity": "perfect", "checks": []}', "not checked"),
        ("verdict.json", b'{"validity": "invalid", "findings": [1]}', "not checked"),
        ("verdict.json", b"[" * 100_000, "not checked"),
        ("verdict.json", b"\xff\xfe", "not checked"),
        ("forensics.json", b"{", "valid"),
        ("forensics.json", b"[]", "valid"),
    ],
)
def test_a_damaged_run_is_shown_as_such(
    results: Path, file: str, content: bytes | None, says: str
) -> None:
    root = newest(results)
    path = root / file
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    app = page_over(results)
    assert says in ask(app, "/runs").text
    for target in ("/", f"/runs/storm/{root.name}", "/scenarios/storm", "/nights/nightly"):
        answer = ask(app, target)
        assert answer.status == 200, answer.text


def test_a_run_under_way_and_one_that_failed_say_so(results: Path) -> None:
    run = RunDirectory(newest(results))
    manifest = read_manifest(run.manifest_path)
    run.verdict_path.unlink()
    app = page_over(results)
    running = replace(manifest, state=RunState.RUNNING, harness=harness_mark())
    write_manifest(run.manifest_path, running)
    assert '<p class="word">running</p>' in ask(app, f"/runs/storm/{run.root.name}").text
    failed = replace(manifest, state=RunState.FAILED, failure="no <room> left")
    write_manifest(run.manifest_path, failed)
    told = ask(app, f"/runs/storm/{run.root.name}").text
    assert '<p class="word">failed</p>' in told
    assert "no &lt;room&gt; left" in told


def test_what_changed_on_disk_is_shown_at_once(results: Path) -> None:
    app = page_over(results)
    assert "20 runs" in ask(app, "/").text
    made_results(results / "more", runs=1, nights=1)
    (only,) = (results / "more" / "storm").iterdir()
    only.rename(results / "storm" / "20280101T000000Z")
    told = ask(app, "/").text
    assert "21 runs" in told
    assert "storm/20280101T000000Z" in told


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"night": "nightly"}', b"\xff"])
def test_a_torn_night_is_shown_as_such(results: Path, content: bytes) -> None:
    path = night_file(results)
    path.write_bytes(content)
    app = page_over(results)
    for target in ("/", "/nights", "/nights/nightly", f"/nights/nightly/{path.parent.name}"):
        answer = ask(app, target)
        assert answer.status == 200, answer.text
        assert "night.json: " in answer.text


def test_a_trend_has_each_finding_by_night_with_its_call(results: Path) -> None:
    told = ask(page_over(results), "/nights/nightly").text
    assert told.count("<title>2027") == 4, "a bar a night"
    assert "storm/lost-write" in told
    assert 'class="call-new"' in told


def test_rates_count_each_run_once_and_have_their_interval(results: Path) -> None:
    rates = ResultsArchive(results).rates("storm")
    plain = [rate for rate in rates if not rate.finding]
    assert sum(rate.runs for rate in plain) == 20
    assert all(rate.low <= rate.hits / rate.runs <= rate.high for rate in rates)
    # A run that is gone from the disk still counts, for its night has it.
    for path in sorted(newest(results).iterdir()):
        path.unlink()
    newest(results).rmdir()
    assert sum(one.runs for one in ResultsArchive(results).rates("storm") if not one.finding) == 20


def test_a_night_under_way_is_asked_for_again_and_says_so_only_if_it_changed(
    results: Path,
) -> None:
    path = night_file(results)
    content = json.loads(path.read_bytes())
    last = content["runs"].pop()
    under_way = {**content, "ended_at": None, "harness": harness_mark()}
    path.write_text(json.dumps(under_way))
    app, target = page_over(results), f"/nights/nightly/{path.parent.name}"
    first = ask(app, target)
    assert "data-live" in first.text
    stamp = {"If-None-Match": first.headers["etag"]}
    assert ask(app, target, headers=stamp).status == 304
    content["runs"].append(last)
    path.write_text(json.dumps({**content, "ended_at": content["started_at"]}))
    later = ask(app, target, headers=stamp)
    assert later.status == 200
    assert f'id="run-{len(content["runs"])}"' in later.text
    assert "data-live" not in later.text


@pytest.mark.parametrize(
    "harness",
    [None, mark_of_a_reused_pid(), "no mark"],
    ids=["no harness", "a pid used again", "no mark"],
)
def test_a_night_whose_process_is_gone_is_not_called_live_whoever_has_its_pid_now(
    results: Path, harness: str | None
) -> None:
    path = night_file(results)
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({**content, "ended_at": None, "harness": harness}))
    told = ask(page_over(results), f"/nights/nightly/{path.parent.name}").text
    assert "data-live" not in told
    assert "--resume" in told


def test_names_of_runs_are_shown_and_not_acted_on(results: Path) -> None:
    path = night_file(results)
    content = json.loads(path.read_bytes())
    content["runs"][0] |= {"reason": "<script>alert(1)</script>\u202e", "verdict": "failed"}
    path.write_text(json.dumps(content))
    told = ask(page_over(results), f"/nights/nightly/{path.parent.name}").text
    assert "<script>alert" not in told
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\N{REPLACEMENT CHARACTER}" in told


@pytest.mark.parametrize("target", ["/nosuch", "/runs/x", "/nights/x", "/nights/x/y", "/runs/a/b"])
def test_what_is_not_there_is_not_found(results: Path, target: str) -> None:
    answer = ask(page_over(results), target)
    assert answer.status == 404
    assert "Back to the overview" in answer.text
