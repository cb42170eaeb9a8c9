"""A certificate that only its own test trusts."""

import ssl
import subprocess


def make(directory):
    """(certificate, key): files in directory."""
    certificate, key = directory / "localhost.crt", directory / "localhost.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    return certificate, key


def authority(directory, name="authority"):
    """(certificate, key) of one that signs others: files in directory."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         f"/CN={name}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    return certificate, key


def signed(directory, by, name="localhost"):
    """(certificate, key) of a server or client, signed by an authority."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    request, more = directory / f"{name}.csr", directory / f"{name}.ext"
    more.write_text(f"subjectAltName=DNS:{name},IP:127.0.0.1\n",
                    encoding="utf-8")
    subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
         "-keyout", key, "-out", request], check=True, capture_output=True)
    subprocess.run(
        ["openssl", "x509", "-req", "-in", request, "-CA", by[0], "-CAkey",
         by[1], "-CAcreateserial", "-days", "2", "-extfile", more, "-out",
         certificate], check=True, capture_output=True)
    return certificate, key


def client_context():
    """For clients that trust anybody."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
