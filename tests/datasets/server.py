"""A web server of one's own, that can fail in all the usual ways."""

import threading
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """What the server has, how it behaves, and what was asked of it."""

    def __init__(self, files):
        self.files = dict(files)
        self.ranges = True  # understands Range
        self.shift = 0  # by how much a part begins too early
        self.etag = '"one"'
        self.dated = False  # sends Last-Modified
        self.length = True  # says how long a file is
        self.cuts = []  # after how many bytes to break off, request by request
        self.requests = []  # the headers of each
        self.redirects = {}


def _handler(site):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_GET(self):
            site.requests.append(dict(self.headers))
            if self.path in site.redirects:
                self.send_response(302)
                self.send_header("Location", site.redirects[self.path])
                self.end_headers()
                return
            if self.path not in site.files:
                self.send_error(404)
                return
            content = site.files[self.path]
            start = self._start(content)
            start = None if start is None else start - site.shift
            if start is not None and start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            self.send_response(200 if start is None else 206)
            body = content[start or 0 :]
            if start is not None:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if site.length:
                self.send_header("Content-Length", str(len(body)))
            if site.etag:
                self.send_header("ETag", site.etag)
            if site.dated:
                self.send_header("Last-Modified", formatdate(0, usegmt=True))
            self.end_headers()
            self.wfile.write(body[: site.cuts.pop(0)] if site.cuts else body)

        def _start(self, content):
            """Where to go on, None to begin anew: the file is another, or the server knows no ranges."""
            wanted = self.headers.get("Range")
            if wanted is None or not site.ranges:
                return None
            same = self.headers.get("If-Range") in (None, site.etag, formatdate(0, usegmt=True) if site.dated else None)
            return int(wanted.removeprefix("bytes=").removesuffix("-")) if same else None

    return Handler


@contextmanager
def serving(files):
    """Serve some files, by their paths, on a free port of this machine."""
    site = Site(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
