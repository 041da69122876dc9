"""The authorities that this machine trusts, as a file that a Java reads."""

import hashlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

from fencepost.clusters.provision.cache import built_beside, cache_dir


def trust_store(bundle: Path) -> Path:
    """The bundle as a Java trust store (PKCS #12), in the cache, named for its content."""
    content = bundle.read_bytes()
    store = cache_dir() / "java" / f"trust-{hashlib.sha256(content).hexdigest()[:16]}"
    if not store.exists():
        authorities = [pkcs12.PKCS12Certificate(one, None) for one in _certificates(content)]
        with built_beside(store) as draft:
            serialized = pkcs12.serialize_java_truststore(authorities, NoEncryption())
            (draft / "authorities.p12").write_bytes(serialized)
    return store / "authorities.p12"


def _certificates(bundle: bytes) -> Iterator[x509.Certificate]:
    """Yield the certificates of a PEM bundle that can be parsed: Java could use no others."""
    blocks = re.findall(
        rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", bundle, re.DOTALL
    )
    for block in blocks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old authorities break rules of today
            try:
                yield x509.load_pem_x509_certificate(block)
            except ValueError:
                continue
