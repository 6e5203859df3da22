"""A certificate authority, a certificate that it signed, and their files."""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass
class Certificate:
    """`key_hash` is what Chromium's `--ignore-certificate-errors-spki-list` names the certificate by.

    `authority` is the certificate that other clients must trust.
    """

    chain: Path
    key: Path
    authority: Path
    key_hash: str


def build(subject: str, key: ec.EllipticCurvePublicKey, issuer: str) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def make_certificate(folder: Path, address: str = "127.0.0.1", name: str = "localhost") -> Certificate:
    """A certificate for an address and a name, by an authority of its own."""
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    public = authority.public_key()
    # The authorities of different tests differ in name, because clients find an issuer by its name.
    issuer = f"Test authority {x509.random_serial_number():x}"
    root = (
        build(issuer, public, issuer)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority, hashes.SHA256())
    )
    names = [x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName(name)]
    leaf = (
        build(address, key.public_key(), issuer)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority, hashes.SHA256())
    )
    files = Certificate(folder / "chain.pem", folder / "key.pem", folder / "authority.pem", "")
    files.chain.write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    files.authority.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    info = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    files.key_hash = base64.b64encode(hashlib.sha256(info).digest()).decode()
    return files
