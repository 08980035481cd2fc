"""Downloads from a real server on this machine: whole, cut, resumed, changed, refused."""

import errno
import hashlib
import socket

import pytest

import relae.datasets._download as download
from relae.datasets._download import Remote, fetch
from relae.errors import DataError

from .server import serving

CONTENT = bytes(range(256)) * 4_000  # about a megabyte
SUM = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def site():
    with serving({"/a.bin": CONTENT}) as found:
        yield found


@pytest.fixture
def remote(site, tmp_path):
    return Remote(f"{site.url}/a.bin", tmp_path / "new" / "a.bin", SUM, len(CONTENT))


def only(remote):
    """The names of the files around the target."""
    return sorted(file.name for file in remote.target.parent.iterdir())


def test_a_whole_file(remote, site):
    reports = []
    fetch(remote, lambda stage, fraction: reports.append((stage, fraction)))
    assert remote.target.read_bytes() == CONTENT
    assert only(remote) == ["a.bin"]
    assert len(site.requests) == 1
    assert reports[-1] == ("checking a.bin", 1.0)
    receiving = [fraction for stage, fraction in reports if stage == "a.bin (1 MB)"]
    assert receiving == sorted(receiving)
    assert receiving[-1] == 1.0
    assert 0 < receiving[0] < 1


def test_nothing_needs_to_be_known(remote, site):
    site.length, site.etag = False, None
    fetch(Remote(remote.url, remote.target))
    assert remote.target.read_bytes() == CONTENT
    assert only(remote) == ["a.bin"]


def test_a_cut_connection_is_taken_up_again(remote, site):
    site.cuts = [300_000, 200_000]
    fetch(remote)
    assert remote.target.read_bytes() == CONTENT
    assert [request.get("Range") for request in site.requests] == [None, "bytes=300000-", "bytes=500000-"]
    assert [request.get("If-Range") for request in site.requests] == [None, '"one"', '"one"']


def test_a_connection_that_keeps_being_cut(remote, site):
    site.cuts = [1_000] * 4
    with pytest.raises(DataError, match=r"was cut after 4 kB of 1 MB\. Run the same again: it goes on from"):
        fetch(remote)
    assert only(remote) == ["a.bin.part", "a.bin.part.json"]
    fetch(remote)
    assert site.requests[-1]["Range"] == "bytes=4000-"
    assert remote.target.read_bytes() == CONTENT
    assert only(remote) == ["a.bin"]


def test_an_interruption_leaves_a_part_to_go_on_from(remote, site):
    def interrupt(stage, fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(remote, interrupt)
    arrived = remote.part.stat().st_size
    assert 0 < arrived < len(CONTENT)
    fetch(remote)
    assert site.requests[-1]["Range"] == f"bytes={arrived}-"
    assert remote.target.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_all_again(remote, site):
    site.ranges = False
    site.cuts = [300_000]
    fetch(remote)
    assert len(site.requests) == 2
    assert remote.target.read_bytes() == CONTENT


def test_a_part_that_was_not_asked_for_is_not_used(remote, site):
    site.shift = 7
    site.cuts = [300_000]
    fetch(remote)
    assert [request.get("Range") for request in site.requests] == [None, "bytes=300000-", None]
    assert remote.target.read_bytes() == CONTENT


def test_a_changed_file_is_not_mixed_with_the_old_one(site, tmp_path):
    remote = Remote(f"{site.url}/a.bin", tmp_path / "a.bin")  # no checksum would tell
    site.cuts = [1_000] * 4
    with pytest.raises(DataError, match="was cut"):
        fetch(remote)
    site.files["/a.bin"], site.etag = CONTENT[::-1], '"two"'
    fetch(remote)
    assert remote.target.read_bytes() == CONTENT[::-1]


def test_a_date_serves_where_there_is_no_tag(site, tmp_path):
    site.etag, site.dated, site.cuts = 'W/"weak"', True, [300_000]
    fetch(Remote(f"{site.url}/a.bin", tmp_path / "a.bin"))
    assert site.requests[1]["If-Range"] == "Thu, 01 Jan 1970 00:00:00 GMT"
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_without_tag_date_and_checksum_it_begins_anew(site, tmp_path):
    site.etag, site.cuts = None, [300_000]
    fetch(Remote(f"{site.url}/a.bin", tmp_path / "a.bin"))
    assert "Range" not in site.requests[1]
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_part_that_is_already_the_whole(remote, site):
    remote.part.parent.mkdir()
    remote.part.write_bytes(CONTENT)
    fetch(remote)
    assert remote.target.read_bytes() == CONTENT
    assert len(site.requests) == 1


def test_a_part_that_is_too_long(remote):
    remote.part.parent.mkdir()
    remote.part.write_bytes(CONTENT + b"more")
    fetch(remote)
    assert remote.target.read_bytes() == CONTENT


def test_a_wrong_checksum(remote, site):
    remote.target.parent.mkdir()
    remote.target.write_bytes(b"old")
    site.files["/a.bin"] = CONTENT[::-1]
    found = hashlib.md5(CONTENT[::-1]).hexdigest()
    with pytest.raises(DataError, match=rf"has the MD5 sum {found} and not {SUM}: .* kept as .*a\.bin\.bad"):
        fetch(remote)
    assert remote.target.read_bytes() == b"old"
    assert only(remote) == ["a.bin", "a.bin.bad"]
    site.files["/a.bin"] = CONTENT
    fetch(remote)
    assert remote.target.read_bytes() == CONTENT


def test_a_page_in_the_place_of_a_zip(site, tmp_path):
    site.files["/a.zip"] = b"<html>The file has moved</html>"
    with pytest.raises(DataError, match=r"a\.zip is no zip: .* kept as .*a\.zip\.bad"):
        fetch(Remote(f"{site.url}/a.zip", tmp_path / "a.zip"))
    assert not (tmp_path / "a.zip").exists()


def test_not_found(site, tmp_path):
    remote = Remote(f"{site.url}/b.bin", tmp_path / "b.bin")
    with pytest.raises(DataError, match=rf"the server answers 404 Not Found\. .* put it at {remote.target}"):
        fetch(remote)
    assert only(remote) == []


def test_no_network(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    remote = Remote(f"http://127.0.0.1:{port}/a.bin", tmp_path / "a.bin")
    with pytest.raises(DataError, match=rf"cannot be reached \(.*refused\): .* put it at {remote.target}"):
        fetch(remote)


def test_a_silent_server(remote, monkeypatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setattr(download, "_TIMEOUT", 0.2)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.bin"
        with pytest.raises(DataError, match=r"cannot be reached \(timed out\)"):
            fetch(Remote(url, remote.target))


def test_redirects_stay_on_the_web(remote, site, tmp_path):
    site.redirects = {"/moved": f"{site.url}/a.bin", "/file": "file:///etc/passwd", "/ftp": "ftp://127.0.0.1/x"}
    fetch(Remote(f"{site.url}/moved", remote.target, SUM))
    assert remote.target.read_bytes() == CONTENT
    for path in ("/file", "/ftp"):
        with pytest.raises(DataError, match=r"the server answers|cannot be reached"):
            fetch(Remote(site.url + path, tmp_path / "b"))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/a", "/etc/passwd"])
def test_other_addresses_are_refused(tmp_path, url):
    with pytest.raises(DataError, match="is no http or https address"):
        fetch(Remote(url, tmp_path / "a"))


def test_a_full_disk_is_seen_before_the_first_byte(remote, site):
    with pytest.raises(DataError, match=r"is full, a\.bin has .* GB: make room, or name another folder"):
        fetch(Remote(remote.url, remote.target, size=10**18))
    assert site.requests == []


def test_a_disk_that_fills_up(remote, monkeypatch):
    def no_room(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "_append", no_room)
    with pytest.raises(DataError, match=r"is full, .* what has arrived is kept"):
        fetch(remote)


def test_a_folder_that_is_a_file(tmp_path, site):
    (tmp_path / "data").write_text("")
    with pytest.raises(DataError, match=r"data cannot be written: .*Name a folder of your own with RELAE_DATA"):
        fetch(Remote(f"{site.url}/a.bin", tmp_path / "data" / "a.bin"))
