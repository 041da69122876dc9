import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_tree import Element, parse_page
from synthetic_run import BROKEN, KINDS, VERDICT, Fault, RunSpec, result, verdict_with, write_run

from fencepost.checkers.anomaly import Anomaly, anomalies_of
from fencepost.checkers.catalogue import CATALOGUE
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import Validity, Verdict
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.report.page import write_page
from fencepost.report.timeline import BIN_COUNT_MAX

pytestmark = pytest.mark.slow

SCRIPT = "</script><script>alert(1)</script>"
ONLOAD = "<img src=x onerror=alert(1)>"

INVALID = RunSpec(
    rate=200,
    sampled=True,
    faults=BROKEN,
    lost=frozenset({401, 404}),
    anomalies=[
        Anomaly(
            check="duplicate",
            key="t-1",
            allowed=True,
            proof=Proof.as_told(
                "Value 77 stands at offsets 4 and 6.",
                operations=(12, 14),
                offsets=(4, 6),
                values=(77,),
            ),
        )
    ],
    verdict=verdict_with(
        result("lost-write", Validity.INVALID, reason="2 acknowledged values are gone.", count=2),
        result("duplicate", count=1, allowed=1),
    ),
)


def page_of(results: Path, spec: RunSpec) -> Element:
    return parse_page(write_page(write_run(results, spec)).read_text())


@pytest.fixture(scope="module")
def invalid(tmp_path_factory: pytest.TempPathFactory) -> Element:
    return page_of(tmp_path_factory.mktemp("invalid"), INVALID)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    spec = RunSpec(
        title=SCRIPT,
        faults=[Fault(kind=ONLOAD, targets=(SCRIPT,), begin=4, effect=5, end=9, evidence=SCRIPT)],
        anomalies=[
            Anomaly(
                check="duplicate",
                key=ONLOAD,
                allowed=False,
                proof=Proof.as_told(f"{SCRIPT} {{{{ 7 * 7 }}}} \x1b[31m \u202e", operations=(1, 2)),
            )
        ],
        verdict=verdict_with(result("duplicate", Validity.INVALID, reason=ONLOAD, count=1)),
    )
    run = write_run(tmp_path_factory.mktemp("hostile"), spec)
    (run.nodes / "broker-1" / 'a" onclick="alert(1).log').write_text("x")
    return write_page(run).read_text()


def plots_of(page: Element) -> dict:
    return json.loads(page.one("script", id="plots-content").children[0])


def models_in(part: object) -> list[dict]:
    """Every model of a Bokeh document."""
    if isinstance(part, list):
        return [model for item in part for model in models_in(item)]
    if not isinstance(part, dict):
        return []
    below = [model for item in part.values() for model in models_in(item)]
    return [part, *below] if part.get("type") == "object" else below


def test_a_valid_run_says_so_and_how_to_repeat_it(tmp_path: Path) -> None:
    page = page_of(tmp_path, RunSpec(faults=BROKEN, verdict=VERDICT))
    assert page.one(id="verdict").text == "valid"
    assert page.one("title").text.startswith("valid · Kills and pauses")
    identity = page.one("dl", id="identity").text
    for fact in ("smoke", "4.3.1", "2026-03-01 08:00:00 UTC", "45.0 s"):
        assert fact in identity
    command = page.one("code", id="command").text
    assert command == "fencepost run scenarios/smoke.yaml --kafka 4.3.1 --seed 7"
    assert page.one("section", id="anomalies").text == "Anomalies None was found."
    assert page.all("p", class_="trouble unread") == []


@pytest.mark.usefixtures("without_plots")
def test_each_kind_of_fault_that_was_asked_for_has_a_row(tmp_path: Path) -> None:
    verdict = verdict_with(replace(result("fault-effects"), figures=KINDS))
    run = write_run(tmp_path, RunSpec(rate=20, faults=BROKEN, verdict=verdict))
    manifest = read_manifest(run.manifest_path)
    demand = replace(manifest, required_faults=("delay",), served_faults=("delay",))
    write_manifest(run.manifest_path, demand)
    page = parse_page(write_page(run).read_text())
    power, delay = (page.one("tr", data_kind=kind) for kind in ("cut_power", "delay"))
    assert power.text == "cut_power 2 1 1,200 30 clients need not be served meanwhile"
    assert delay.text.startswith("delay 0 0 ")
    assert delay.text.endswith(" it has to take effect")
    assert delay.attributes["class"] == "doubtful"


@pytest.mark.usefixtures("without_plots")
def test_a_build_of_one_s_own_is_named_with_its_path(tmp_path: Path) -> None:
    page = page_of(tmp_path, RunSpec(sealed=False, release="path:/src/kafka", verdict=VERDICT))
    assert "4.3.1 (path:/src/kafka)" in page.one("dl", id="identity").text


def test_every_check_stands_in_the_table_with_its_answer(invalid: Element) -> None:
    rows = {
        row.attributes["data-check"]: row
        for row in invalid.all("tr")
        if "data-check" in row.attributes
    }
    assert set(rows) == {check.check for check in INVALID.verdict.checks}
    assert "invalid" in rows["lost-write"].text
    assert "2 acknowledged values are gone." in rows["lost-write"].text
    assert "keys 3" in rows["lost-write"].text


@pytest.mark.usefixtures("without_plots")
def test_of_many_figures_most_are_folded_away(tmp_path: Path) -> None:
    figures = {f"send_ok_during_fault_{n}_count": 1000.0 + n for n in range(100)}
    verdict = Verdict.of([replace(result("statistics"), figures=figures)])
    row = page_of(tmp_path, RunSpec(sealed=False, verdict=verdict)).one(
        "tr", data_check="statistics"
    )
    assert row.one("summary").text == "96 more"
    assert "send ok during fault 99 1,099" in row.one("details").text


def test_an_invalid_run_names_what_is_violated_and_why(invalid: Element) -> None:
    assert invalid.one(id="verdict").text == "invalid"
    answer = invalid.one("div", class_="answer").text
    assert f"1 of {len(CATALOGUE)} checks is violated: lost-write (2)." in answer
    assert "2 acknowledged values are gone." in answer


def test_an_anomaly_is_proven_by_its_operations_and_the_faults_open_meanwhile(
    invalid: Element,
) -> None:
    group = invalid.one("article", data_check="lost-write")
    assert "2 illegal" in group.text
    assert "An acknowledged record is gone" in group.text, "the catalogue's meaning"
    assert "Rule: The bound is" in group.text
    proof = group.all("div", class_="proof")[0]
    send, poll = proof.one("tbody").all("tr")
    assert send.all("td")[1].text == "send"
    assert poll.all("td")[1].text == "poll"
    assert re.search(r"\d+: \d{13}", send.text), "offset: value"
    assert "kill broker-1" in send.text
    assert "anomalies/lost-write.parquet" in group.text


def test_the_facts_of_an_anomaly_stand_below_its_sentence_and_lead_to_their_sources(
    invalid: Element,
) -> None:
    proof = invalid.one("article", data_check="lost-write").all("div", class_="proof")[0]
    send, over = (row.attributes["id"] for row in proof.one("tbody").all("tr"))
    facts = {
        one.one("dt").text: one.one("dd")
        for one in proof.one("dl", class_="evidence").children
        if isinstance(one, Element)
    }
    assert list(facts) == ["send", "over", "offset", "reached", "value", "later value", "f"]
    index = proof.one("tbody").all("tr")[0].all("td")[0].text
    assert facts["send"].text == f"operation {index}"
    assert facts["send"].one("a").attributes["href"] == f"#{send}"
    assert re.fullmatch(rf"\d+ of operation {index}", facts["offset"].text)
    assert facts["offset"].one("a").attributes["href"] == f"#{send}"
    assert facts["reached"].one("a").attributes["href"] == f"#{over}"
    assert facts["later value"].all("a") == []
    assert facts["f"].text == "poll"


def test_every_link_within_the_page_leads_somewhere(invalid: Element) -> None:
    ids = [element.attributes["id"] for element in invalid.all() if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    links = {link.attributes["href"] for link in invalid.all("a")}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_a_legal_anomaly_is_told_apart(invalid: Element) -> None:
    group = invalid.one("article", data_check="duplicate")
    assert "1 allowed here" in group.text
    assert "illegal" not in group.text


def test_a_time_of_an_anomaly_leads_to_the_plots(invalid: Element) -> None:
    link = invalid.one("section", id="anomalies").all("a", class_="time nowrap")[0]
    assert link.attributes["href"] == "#timeline"
    assert 0 < float(link.attributes["data-from"]) <= float(link.attributes["data-to"]) < 45
    assert link.text.endswith(" s")


@pytest.mark.usefixtures("without_plots")
def test_an_unknown_run_gives_each_reason(tmp_path: Path) -> None:
    spec = RunSpec(
        verdict=verdict_with(
            result("evidence", Validity.UNKNOWN, reason="Nothing was acknowledged."),
            result("unseen", Validity.UNKNOWN, reason="Key t-2 was not read to its end."),
        )
    )
    page = page_of(tmp_path, spec)
    assert page.one(id="verdict").text == "unknown"
    reasons = [item.text for item in page.one("ul", class_="reasons break").all("li")]
    assert reasons == [
        "evidence is unknown: Nothing was acknowledged.",
        "unseen is unknown: Key t-2 was not read to its end.",
    ]


def test_a_failed_run_says_what_happened_and_links_the_logs(tmp_path: Path) -> None:
    spec = RunSpec(state=RunState.FAILED, sealed=False, failure="broker-2 did not come up in 60 s")
    page = page_of(tmp_path, spec)
    assert page.one(id="verdict").text == "failed"
    assert "broker-2 did not come up in 60 s" in page.one("div", class_="answer").text
    links = {link.attributes["href"] for link in page.one("section", id="logs").all("a")}
    assert "./nodes/broker-2/logs/server.log" in links
    assert "./clients/producer-0.log" in links
    assert page.all("script", id="plots-content") == []


def test_a_run_without_a_manifest_still_gives_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(sealed=False))
    run.manifest_path.unlink()
    page = parse_page(write_page(run).read_text())
    assert page.one(id="verdict").text == "not checked"
    assert "cannot read the manifest" in page.all("p", class_="trouble unread")[0].text


def test_a_run_that_was_recorded_and_not_checked_shows_its_plots(tmp_path: Path) -> None:
    page = page_of(tmp_path, RunSpec(state=RunState.RECORDED, faults=BROKEN))
    assert page.one(id="verdict").text == "not checked"
    assert page.all("section", id="checks") == []
    assert len(plots_of(page)["roots"]) == 4


def test_an_open_history_has_no_plots_of_sends_and_polls(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(state=RunState.RECORDED, faults=BROKEN))
    write_manifest(run.manifest_path, replace(read_manifest(run.manifest_path), model="register"))
    page = parse_page(write_page(run).read_text())
    assert len(plots_of(page)["roots"]) == 1


def test_a_damaged_table_is_a_trouble_and_the_rest_is_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(faults=BROKEN, verdict=VERDICT))
    (run.table_path("operations") / "part-00.parquet").write_bytes(b"torn")
    page = parse_page(write_page(run).read_text())
    assert len(page.all("p", class_="trouble unread")) == 1
    assert page.one(id="verdict").text == "valid"
    assert len([row for row in page.all("tr") if "data-fault" in row.attributes]) == len(BROKEN)


def test_anomalies_are_told_even_if_their_records_cannot_be_read(tmp_path: Path) -> None:
    run = write_run(tmp_path, INVALID)
    for bucket in run.table_path("records").iterdir():
        bucket.write_bytes(b"torn")
    page = parse_page(write_page(run).read_text())
    told = page.one("article", data_check="lost-write").all("p", class_="detail break")
    stored = anomalies_of(pq.read_table(run.anomalies / "lost-write.parquet"))
    assert {one.text for one in told} == {one.detail for one in stored} != set()
    assert page.all("p", class_="trouble unread")


def test_words_of_a_newer_history_are_a_trouble(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, verdict=VERDICT))
    part = run.table_path("operations") / "part-00.parquet"
    table = pq.read_table(part)
    newer = pa.array(["teleport"] * len(table), pa.string())
    pq.write_table(table.set_column(table.schema.get_field_index("f"), "f", newer), part)
    page = parse_page(write_page(run).read_text())
    assert "teleport" in page.one("p", class_="trouble unread").text


def test_columns_of_another_history_are_a_trouble(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, verdict=VERDICT))
    part = run.table_path("operations") / "part-01.parquet"
    pq.write_table(pq.read_table(part).drop_columns(["outcome"]), part)
    page = parse_page(write_page(run).read_text())
    assert "part-01.parquet" in page.one("p", class_="trouble unread").text


def test_an_empty_history_works(tmp_path: Path) -> None:
    page = page_of(tmp_path, RunSpec(rate=0, verdict=VERDICT))
    assert "No operation was recorded." in page.one("section", id="operations").text
    assert "No fault was recorded." in page.one("section", id="faults").text


def test_faults_show_their_evidence_and_grounds(invalid: Element) -> None:
    row = invalid.one("tr", data_fault="0").text
    assert "kill broker-1" in row
    assert "pid 4711 is gone" in row
    assert "registered again, unfenced" in row
    sends, polls = (cell.text for cell in invalid.one("tr", data_fault="0").all("td")[-2:])
    assert int(sends.replace(",", "")) > 100
    assert int(polls) > 10


def test_a_fault_without_effect_or_heal_is_marked(tmp_path: Path) -> None:
    faults = [
        Fault(kind="partition", targets=("broker-1",), begin=4, effect=None, end=9),
        Fault(kind="kill", targets=("broker-2",), begin=10, effect=11, end=None),
    ]
    page = page_of(tmp_path, RunSpec(faults=faults, verdict=VERDICT))
    assert "no effect" in page.one("tr", data_fault="0").text
    assert "not seen to heal" in page.one("tr", data_fault="1").text
    assert "1 without effect" in page.one("dl", id="service").text


def test_operations_are_counted_by_outcome_and_errors_explained(invalid: Element) -> None:
    sends = invalid.one("tr", data_f="send").all("td")
    ok, info, fail, total = (int(cell.text.replace(",", "")) for cell in sends)
    assert ok + info + fail == total == round(200 * 45 * 0.88)
    assert info > 0
    error = invalid.one("tr", data_error="_MSG_TIMED_OUT").text
    assert f"info {info:,}" in error
    assert "message.timeout.ms" in error, "the registry's meaning"


@pytest.mark.usefixtures("without_plots")
def test_provenance_has_versions_digests_and_relative_links(tmp_path: Path) -> None:
    digests = {"history/faults.parquet": "ab" * 32, "history/lost.parquet": "cd" * 32}
    page = page_of(tmp_path, RunSpec(verdict=VERDICT, digests=digests))
    section = page.one("section", id="provenance")
    for fact in ("0.1.0", "5d41402abc4b2a76", "Linux 6.1.0", "abababababababab", "missing"):
        assert fact in section.text
    links = [link.attributes["href"] for link in section.all("a")]
    assert "./history/faults.parquet" in links
    assert "./nodes/broker-1/logs/server.log" in links
    assert not [link for link in links if "/data/" in link], "Kafka's own files are no evidence"
    assert all(link.startswith("./") for link in links)


def test_the_plots_share_one_time_axis_and_mark_the_heal(invalid: Element) -> None:
    document = plots_of(invalid)
    figures = [model for model in models_in(document["roots"]) if model["name"] == "Figure"]
    assert len(figures) == 6
    ranges = [figure["attributes"]["x_range"] for figure in figures]
    assert len({x_range["id"] for x_range in ranges}) == 1, "zooming one zooms all"
    labels = [m for m in models_in(document) if m["name"] == "Label"]
    assert [label["attributes"]["text"] for label in labels] == ["healed"] * 6
    axes = [m["attributes"] for m in models_in(document) if m["name"] == "LinearAxis"]
    assert [a.get("axis_label") for a in axes].count("seconds of the run") == 6


def test_each_kind_of_fault_has_a_legend_and_its_shades(invalid: Element) -> None:
    kinds = {fault.kind for fault in BROKEN}
    bar = invalid.one("div", class_="bar")
    assert {b.text for b in bar.all("button", class_="entry")} == kinds
    tags = [m.get("attributes", {}).get("tags", []) for m in models_in(plots_of(invalid))]
    for kind in kinds:
        assert sum(f"entry=fault:{kind}" in found for found in tags) >= 6


def test_without_faults_there_is_no_plot_of_them(tmp_path: Path) -> None:
    page = page_of(tmp_path, RunSpec(verdict=VERDICT))
    assert [f.one("h3").text for f in page.all("figure")] == [
        "Sends",
        "Latency of acknowledged sends",
        "Polls",
    ]
    assert len(plots_of(page)["roots"]) == 3


def test_a_long_run_has_bounded_plots(tmp_path: Path) -> None:
    short = write_page(write_run(tmp_path / "short", RunSpec(seconds=60, rate=20, verdict=VERDICT)))
    spec = RunSpec(seconds=8 * 3600, rate=0, verdict=VERDICT)
    run = write_run(tmp_path / "long", spec)
    operations = tmp_path / "short/smoke/latest/history/operations/part-00.parquet"
    for part in run.table_path("operations").glob("*.parquet"):
        pq.write_table(pq.read_table(operations), part)
    page = parse_page(write_page(run).read_text())
    arrays = [
        m["attributes"]["data"]["entries"]
        for m in models_in(plots_of(page))
        if m["name"] == "ColumnDataSource"
    ]
    longest = max(
        len(values) for entries in arrays for _, values in entries if isinstance(values, list)
    )
    assert 1000 < longest <= BIN_COUNT_MAX
    assert short.stat().st_size < run.report_path.stat().st_size < 3_000_000


def test_nothing_is_loaded_from_anywhere(invalid: Element) -> None:
    referred = [
        element.attributes[name]
        for element in invalid.walk()
        for name in ("src", "href", "action", "data", "poster", "srcset", "formaction")
        if name in element.attributes
    ]
    assert referred
    for reference in referred:
        assert reference.startswith(("#", "./", "data:")), reference
    style = invalid.one("style").text
    assert "url(" not in style
    assert "@import" not in style
    assert not invalid.all("iframe")


def test_only_the_page_s_own_scripts_may_run(hostile: str) -> None:
    page = parse_page(hostile)
    policy = next(
        meta.attributes["content"]
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2]
    assert "unsafe-eval" not in policy
    scripts = [s for s in page.all("script") if s.attributes.get("type") != "application/json"]
    for script in scripts:
        digest = hashlib.sha256(script.children[0].encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert len(scripts) == policy.count("'sha256-") == 3


def test_hostile_text_is_shown_and_not_acted_on(hostile: str) -> None:
    page = parse_page(hostile)
    assert page.one("h1").text == SCRIPT
    assert not [e for e in page.walk() if any(name.startswith("on") for name in e.attributes)]
    assert not page.all("img")
    detail = page.one("p", class_="detail break").text
    assert detail == f"{SCRIPT} {{{{ 7 * 7 }}}} �[31m �"
    assert ONLOAD in page.one("tr", data_check="duplicate").text
    assert "\x1b" not in hostile
    content = page.one("script", id="plots-content").children[0]
    assert "<" not in content, "no parser may see an element inside the data"
    assert SCRIPT in json.dumps(json.loads(content), ensure_ascii=False)


@pytest.mark.usefixtures("without_plots")
def test_writing_again_replaces_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, verdict=VERDICT))
    first = write_page(run).read_text()
    assert write_page(run) == run.report_path
    names = {path.name for path in run.root.iterdir()}
    assert "report.html" in names
    assert not [name for name in names if name.startswith(".") or name.endswith(".tmp")]
    assert "valid" in first


@pytest.mark.usefixtures("without_plots")
def test_a_run_with_a_verdict_that_failed_afterwards_says_both(tmp_path: Path) -> None:
    spec = replace(INVALID, state=RunState.FAILED, failure="the disk is full")
    page = page_of(tmp_path, spec)
    assert page.one(id="verdict").text == "invalid"
    assert "The run itself failed: the disk is full" in page.text
