import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from vace_ad.errors import InputError
from vace_study import fetch as module
from vace_study import published
from vace_study.fetch import fetch


def bundle(names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(f"TSB-AD-M/{name}.csv", f"c0,Label\n{name},0\n")
        archive.writestr("TSB-AD-M/readme.txt", "not a series")
        archive.writestr("../../outside_tr_1.txt", "nor this")
    return out.getvalue()


CONTENT = bundle(published.all_names())
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(HTTPServer):
    """Serves CONTENT, with ranges; may break off after some bytes, or say no."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.limit, self.ranges, self.status = None, [], None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/TSB-AD-M.zip"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if server.status or start >= len(CONTENT):
            self.send_error(server.status or 416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start:][: server.limit])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


def test_all_series_arrive_and_nothing_else(server, tmp_path):
    heard = []
    paths = fetch(tmp_path, server.address, SHA256, lambda *news: heard.append(news))
    assert len(paths) == 200
    assert {path.parent for path in paths} == {tmp_path / "TSB-AD-M"}
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        path.name for path in paths
    ]
    assert heard[-1] == (len(CONTENT), len(CONTENT))


def test_a_broken_download_goes_on_where_it_was(server, tmp_path):
    server.limit = 1000
    with pytest.raises(InputError, match="goes on"):
        fetch(tmp_path, server.address, SHA256)
    server.limit = None
    assert len(fetch(tmp_path, server.address, SHA256)) == 200
    assert server.ranges == [None, "bytes=1000-"]


def test_a_download_that_was_complete_is_not_repeated(server, tmp_path):
    (tmp_path / "TSB-AD-M.zip.part").write_bytes(CONTENT)
    assert len(fetch(tmp_path, server.address, SHA256)) == 200
    assert server.ranges == [f"bytes={len(CONTENT)}-"]


def test_a_wrong_checksum_is_refused_and_started_afresh(server, tmp_path):
    (tmp_path / "TSB-AD-M.zip.part").write_bytes(b"x" * 500)
    with pytest.raises(InputError, match="SHA-256"):
        fetch(tmp_path, server.address, SHA256)
    assert not (tmp_path / "TSB-AD-M").exists()
    assert len(fetch(tmp_path, server.address, SHA256)) == 200


def test_an_archive_that_lacks_series_is_named(server, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "all_names", lambda: frozenset({"999_X_id_1_Y_tr_1_1st_2"}))
    with pytest.raises(InputError, match="first 999_X"):
        fetch(tmp_path, server.address, None)


def test_a_file_that_is_no_archive(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_download", lambda address, target, told: target.write_bytes(b"?"))
    with pytest.raises(InputError, match="damaged"):
        fetch(tmp_path, server.address, None)


def test_an_address_that_says_no(server, tmp_path):
    server.status = 404
    with pytest.raises(InputError, match="404"):
        fetch(tmp_path, server.address, SHA256)
    with pytest.raises(InputError, match="cannot be reached"):
        fetch(tmp_path, "http://127.0.0.1:9/TSB-AD-M.zip", SHA256)
