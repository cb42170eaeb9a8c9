"""conf.d/tls.conf: each client over TLS, with and without a certificate."""

import asyncio
import json
import ssl

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

from lib import certificate, models, perf_analyzer
from lib.curl import curl
from lib.grpc_client import SERVICE, numbers, pb

REST, GRPC = tritonclient.http, tritonclient.grpc
BODY = ('{"inputs":[{"name":"IN","datatype":"INT32","shape":[2],'
        '"data":[4,5]}]}')
MUTUAL = ("ssl_client_certificate", "ssl_verify_client")


class Tls:
    """The server, the authority of its certificate and the client's own."""

    def __init__(self, snippet, folder, mutual):
        folder.chmod(0o755)
        self.mutual = mutual
        self.authority, by = certificate.authority(folder)
        by = (self.authority, by)
        cert, key = certificate.signed(folder, by)
        files = {"server_crt": cert, "server_key": key}
        self.pair = None
        if mutual:
            self.pair = certificate.signed(folder, by, "client")
        files["clients_crt"] = self.authority

        def fill(repository):
            models.standard_repository(repository)
            models.identity(repository, "plain", [("IN", "FP32", [4])])

        self.server, (self.port,) = snippet(
            "tls", 8443, fill=fill, files=files,
            switch_on=MUTUAL if mutual else ())
        self.url = f"localhost:{self.port}"

    def curl(self, path, *arguments, pair=True):
        given = ["--cert", self.pair[0], "--key", self.pair[1]] \
            if self.pair and pair else []
        return curl("--cacert", self.authority, *given, *arguments,
                    f"https://{self.url}{path}")

    def context(self, pair=True):
        made = ssl.create_default_context(cafile=str(self.authority))
        if self.pair and pair:
            made.load_cert_chain(*self.pair)
        return made

    def grpc_files(self, pair=True):
        """tritonclient's arguments."""
        files = {"ssl": True, "root_certificates": str(self.authority)}
        if self.pair and pair:
            files.update(certificate_chain=str(self.pair[0]),
                         private_key=str(self.pair[1]))
        return files


@pytest.fixture(params=[False, True], ids=["tls", "mtls"])
def tls(request, snippet, tmp_path):
    return Tls(snippet, tmp_path, request.param)


@pytest.fixture
def mtls(snippet, tmp_path):
    return Tls(snippet, tmp_path, True)


def tensor(api, values=(4, 5)):
    given = api.InferInput("IN", [len(values)], "INT32")
    given.set_data_from_numpy(numpy.array(values, numpy.int32))
    return [given]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl(tls, version):
    status, body = tls.curl("/v2/models/id_int32/infer", version, "-d", BODY)
    assert status == 200
    assert json.loads(body)["outputs"][0]["data"] == [4, 5]
    status, body = tls.curl("/v2", version, "-o", "/dev/null", "-w",
                            "%{http_version}\n%{http_code}")
    assert body.decode().split()[0] == version.removeprefix("--http")
    large = bytes(5 << 20)
    status, body = tls.curl(
        "/v2/models/id_uint8/infer", version, "-X", "POST", "-H",
        "Inference-Header-Content-Length: 0", "--data-binary",
        f"@{large_file(tls, large)}")
    assert status == 200 and body.endswith(large)


def large_file(tls, data):
    path = tls.server.prefix / "large"
    path.write_bytes(data)
    return path


def test_rest_client(tls):
    with REST.InferenceServerClient(
            tls.url, ssl=True, ssl_context_factory=tls.context) as client:
        result = client.infer("id_int32", tensor(REST))
        assert result.as_numpy("OUT").tolist() == [4, 5]


def test_rest_client_of_asyncio(tls):
    async def main():
        async with tritonclient.http.aio.InferenceServerClient(
                tls.url, ssl=True, ssl_context=tls.context()) as client:
            result = await client.infer("id_int32", tensor(REST))
            assert result.as_numpy("OUT").tolist() == [4, 5]

    asyncio.run(main())


def test_grpc_client(tls):
    with GRPC.InferenceServerClient(tls.url, **tls.grpc_files()) as client:
        assert client.is_server_ready()
        result = client.infer("id_int32", tensor(GRPC))
        assert result.as_numpy("OUT").tolist() == [4, 5]
        found = []
        client.start_stream(lambda result, error: found.append(
            (result, error)))
        for i in range(5):
            client.async_stream_infer("id_int32", tensor(GRPC, [i]))
        client.stop_stream()
    assert [e for _, e in found] == [None] * 5
    assert [r.as_numpy("OUT").tolist() for r, _ in found] \
        == [[i] for i in range(5)]


def test_grpc_client_of_asyncio(tls):
    async def main():
        async with tritonclient.grpc.aio.InferenceServerClient(
                tls.url, **tls.grpc_files()) as client:
            result = await client.infer("id_int32", tensor(GRPC))
            assert result.as_numpy("OUT").tolist() == [4, 5]

    asyncio.run(main())


def test_raw_stubs(tls):
    given = [tls.authority.read_bytes()]
    if tls.pair:
        given += [tls.pair[1].read_bytes(), tls.pair[0].read_bytes()]
    with grpc.secure_channel(
            tls.url, grpc.ssl_channel_credentials(*given)) as channel:
        answer = channel.unary_unary(
            SERVICE + "ModelInfer",
            response_deserializer=pb.ModelInferResponse.FromString)(
                numbers("id_int32", [7]).SerializeToString(), timeout=60)
    assert answer.raw_output_contents == [b"\7\0\0\0"]


def test_perf_analyzer(tls, tmp_path):
    rest = ["--ssl-https-verify-peer", "1", "--ssl-https-verify-host", "2",
            "--ssl-https-ca-certificates-file", str(tls.authority)]
    rpc = ["--ssl-grpc-use-ssl", "--ssl-grpc-root-certifications-file",
           str(tls.authority)]
    if tls.pair:
        cert, key = map(str, tls.pair)
        rest += ["--ssl-https-client-certificate-file", cert,
                 "--ssl-https-client-certificate-type", "PEM",
                 "--ssl-https-private-key-file", key,
                 "--ssl-https-private-key-type", "PEM"]
        rpc += ["--ssl-grpc-private-key-file", key,
                "--ssl-grpc-certificate-chain-file", cert]
    perf_analyzer.run(tmp_path, "-m", "plain", "-u", f"https://{tls.url}",
                      *rest)
    perf_analyzer.run(tmp_path, "-m", "plain", "-u", tls.url, "-i", "grpc",
                      *rpc)


def test_nobody_without_a_certificate(mtls):
    for version in ("--http1.1", "--http2"):
        status, body = mtls.curl("/v2/health/live", version, pair=False)
        assert status == 400 and b"certificate" in body
    with GRPC.InferenceServerClient(
            mtls.url, **mtls.grpc_files(False)) as client:
        with pytest.raises(InferenceServerException):
            client.infer("id_int32", tensor(GRPC))
    with REST.InferenceServerClient(
            mtls.url, ssl=True, ssl_context_factory=lambda: mtls.context(
                False)) as client:
        assert not client.is_server_live()


def test_nobody_with_a_certificate_of_another_authority(mtls, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    mtls.pair = certificate.signed(
        other, certificate.authority(other, "other"), "client")
    status, body = mtls.curl("/v2/health/live")
    assert status == 400 and b"certificate" in body
    with GRPC.InferenceServerClient(mtls.url,
                                    **mtls.grpc_files()) as client:
        with pytest.raises(InferenceServerException):
            client.infer("id_int32", tensor(GRPC))


def test_nothing_in_the_clear(tls):
    status, _ = curl(f"http://127.0.0.1:{tls.port}/v2/health/live")
    assert status == 400
