"""What the web page refuses: other names, other methods, and every way out of the results."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from asked import PORT, ask
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from fencepost.bench.serve import made_results
from fencepost.harness.serve.archive import ResultsArchive
from fencepost.report.serve.app import application
from fencepost.report.serve.security import file_inside

SECRET = b"what lies beside the results"


@pytest.fixture(scope="module")
def results() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        outside, found = Path(folder).resolve() / "outside", Path(folder).resolve() / "results"
        outside.mkdir()
        (outside / "secret.txt").write_bytes(SECRET)
        made_results(found, runs=4, nights=2)
        (found / "out").symlink_to(outside)
        (found / "out.txt").symlink_to(outside / "secret.txt")
        (found / "storm" / "20270101T220000Z").symlink_to(outside)
        (found / "loop").symlink_to(found / "loop")
        os.mkfifo(found / "pipe")
        yield found


@pytest.fixture(scope="module")
def app(results: Path) -> ASGIApp:
    return application(ResultsArchive(results), results, port=PORT)


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}"])
def test_it_answers_to_its_own_names(app: ASGIApp, host: str) -> None:
    assert ask(app, "/", host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1:{PORT}.evil.example",
        f"0.0.0.0:{PORT}",
        f"[::1]:{PORT}",
    ],
)
def test_it_answers_to_no_other_name(app: ASGIApp, host: str | None) -> None:
    assert ask(app, "/", host=host).status == 400
    assert ask(app, "/static/serve.css", host=host).status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_can_only_be_read(app: ASGIApp, method: str) -> None:
    answer = ask(app, "/", method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_is_answered_without_a_body(app: ASGIApp) -> None:
    assert ask(app, "/files/nights/nightly/20270101T220000Z/night.json", method="HEAD").body == b""
    assert ask(app, "/", method="HEAD").status == 200


@pytest.mark.parametrize("target", ["/", "/runs", "/nosuch", "/static/serve.css", "/runs/x/y"])
def test_every_answer_carries_the_policy(app: ASGIApp, target: str) -> None:
    headers = ask(app, target).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in policy


def test_a_refusal_carries_the_headers_too(app: ASGIApp) -> None:
    assert "content-security-policy" in ask(app, "/", host="evil.example").headers


def test_a_stored_page_is_in_a_sandbox_without_our_origin(app: ASGIApp, results: Path) -> None:
    (page,) = list(results.glob("storm/2027*/report.html"))[:1]
    answer = ask(app, f"/files/{page.relative_to(results)}")
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.svg", "application/octet-stream"),
        ("a.xml", "application/octet-stream"),
        ("a.xhtml", "application/octet-stream"),
        ("a.js", "application/octet-stream"),
        ("a.json", "text/plain; charset=utf-8"),
        ("a.log", "text/plain; charset=utf-8"),
    ],
)
def test_nothing_else_stored_is_taken_for_a_page(
    app: ASGIApp, results: Path, name: str, kind: str
) -> None:
    (results / name).write_text("<script>alert(1)</script>")
    answer = ask(app, f"/files/{name}")
    assert answer.headers["content-type"] == kind
    saved = "attachment" in answer.headers.get("content-disposition", "")
    assert saved == (kind == "application/octet-stream")
    assert answer.headers["content-security-policy"].startswith("sandbox")


WAYS_OUT = [
    "/files/../outside/secret.txt",
    "/files/storm/../../outside/secret.txt",
    "/files/%2e%2e/outside/secret.txt",
    "/files/..%2foutside%2fsecret.txt",
    "/files/%2e%2e%2foutside%2fsecret.txt",
    "/files/..%5coutside%5csecret.txt",
    "/files/..\\outside\\secret.txt",
    "/files//etc/passwd",
    "/files/%2fetc%2fpasswd",
    "/files/out/secret.txt",
    "/files/out.txt",
    "/files/loop",
    "/files/pipe",
    "/files/storm",
    "/files/",
    "/files/nosuch",
    "/files/night.json%00.html",
    "/files/./nights",
    "/static/../pages.py",
    "/static/..%2fpages.py",
    "/static/%2e%2e/pages.py",
    "/runs/../outside",
    "/runs/storm/..",
    "/runs/out/secret.txt",
    "/runs/storm/20270101T220000Z",
    "/runs/storm/%2e%2e%2f%2e%2e",
    "/nights/../..",
    "/nights/nightly/../..",
    "/scenarios/..",
    "/scenarios/%2e%2e",
]


@pytest.mark.parametrize("target", WAYS_OUT)
def test_no_path_leads_out_of_the_results(app: ASGIApp, target: str) -> None:
    answer = ask(app, target)
    assert answer.status == 404, answer.text
    assert SECRET not in answer.body


@given(st.lists(st.sampled_from(["..", ".", "", "out", "storm", "outside", "secret.txt", "a\0"])))
def test_only_files_inside_are_found(parts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "results"
        (root / "storm").mkdir(parents=True)
        (root / "storm" / "secret.txt").write_bytes(b"ours")
        (root.parent / "outside").mkdir()
        (root.parent / "outside" / "secret.txt").write_bytes(SECRET)
        (root / "out").symlink_to("../outside")
        found = file_inside(root, "/".join(parts))
        assert found is None or (found.read_bytes() == b"ours" and parts == ["storm", "secret.txt"])


def test_a_link_within_the_results_is_followed(tmp_path: Path) -> None:
    (tmp_path / "storm").mkdir()
    (tmp_path / "storm" / "a.json").write_text("{}")
    (tmp_path / "latest").symlink_to("storm")
    assert file_inside(tmp_path, "latest/a.json") == tmp_path.resolve() / "storm" / "a.json"
