"""A certificate that only its own test trusts."""

import ssl
import subprocess


def make(folder):
    """(certificate, key): files in folder."""
    certificate, key = folder / "localhost.crt", folder / "localhost.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    return certificate, key


def client_context():
    """For clients that trust anybody."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
