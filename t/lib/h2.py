"""HTTP/2 by hand: windows, resets and pauses no client library would show.

Header blocks are sent as literals; of the answer's only :status is read, and
the last one is kept, unless there is a decoder of hpack's.
"""

import socket
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = \
    0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, PADDED, ACK = 1, 4, 8, 1
INDEXED_STATUS = {0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400,
                  0x8d: 404, 0x8e: 500}
WINDOW = 65535              # of a stream, before its first grant


def literal(text):
    data = text.encode()
    size = len(data)
    if size < 127:
        return bytes([size]) + data
    return bytes([127, (size - 127) & 127 | 128, (size - 127) >> 7]) + data


def block(headers):
    return b"".join(b"\0" + literal(k) + literal(v) for k, v in headers)


def status_of(data):
    while data[0] >> 5 == 1:                # a table size update
        data = data[1:]
    if data[0] & 0x80:
        return INDEXED_STATUS[data[0]]
    size = data[1] & 0x7f
    text = data[2:2 + size]
    if data[1] & 0x80:                      # Huffman: digits 0 to 2 have 5
        bits = "".join(f"{b:08b}" for b in text)    # bits, the others 6
        digits = ""
        while len(digits) < 3:
            if int(bits[:5], 2) < 3:
                digits, bits = digits + str(int(bits[:5], 2)), bits[5:]
            else:
                digits += str(int(bits[:6], 2) - 0x19 + 3)
                bits = bits[6:]
        return int(digits)
    return int(text)


class Stream:
    def __init__(self):
        self.status = None
        self.body = b""
        self.ended = False
        self.reset = None
        self.block = b""
        self.grants = []            # by WINDOW_UPDATE
        self.headers = []           # and trailers, where there is a decoder


class H2:
    """One connection; window: what the server may send on each stream.  A
    patient one goes on with what the server has taken before GOAWAY.  made: a
    socket that is connected already.  decoder: hpack.Decoder()."""

    def __init__(self, port, window=65535, timeout=20.0, patient=False,
                 made=None, decoder=None):
        self.socket = made or socket.create_connection(("127.0.0.1", port),
                                                       timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.streams = {}
        self.number = -1
        self.buffer = b""
        self.pongs = 0
        self.patient = patient
        self.decoder = decoder
        self.last = None            # the last stream that GOAWAY has named
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window))
        self.give(0, 1 << 30)

    def frame(self, kind, flags, stream, payload=b""):
        self.socket.sendall(struct.pack(
            ">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream)
            + payload)

    def give(self, stream, size):
        self.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))

    def post(self, path, headers=None, body=None, method="POST"):
        """A new stream; body None: DATA follows by data(); headers: a
        dictionary, or pairs."""
        if isinstance(headers, dict):
            headers = headers.items()
        self.number += 2
        stream = self.number
        self.streams[stream] = Stream()
        self.frame(HEADERS, END_HEADERS, stream, block([
            (":method", method), (":scheme", "http"), (":path", path),
            (":authority", "localhost"), *(headers or ())]))
        if body is not None:
            self.data(stream, body, True)
        return stream

    def data(self, stream, data, end=False):
        """At most 16384 bytes a frame; the caller keeps to the window."""
        pieces = [data[i:i + 16384] for i in range(0, len(data), 16384)]
        for i, piece in enumerate(pieces or [b""]):
            last = end and i == max(len(pieces) - 1, 0)
            self.frame(DATA, END_STREAM if last else 0, stream, piece)

    def data_in_window(self, number, data, sent=0):
        """The rest of a body of which some bytes were sent, as the window
        permits, until the server ends the stream."""
        stream, whole = self.streams[number], sent + len(data)
        while not stream.ended and sent < whole:
            room = WINDOW + sum(stream.grants) - sent
            if room <= 0:
                self.step()
                continue
            piece = data[:min(room, 16384)]
            data, sent = data[len(piece):], sent + len(piece)
            self.data(number, piece, sent == whole)

    def reset(self, stream):
        self.frame(RST_STREAM, 0, stream, struct.pack(">I", 8))

    def _exactly(self, size):
        while len(self.buffer) < size:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("closed by the server")
            self.buffer += data
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def take(self):
        """One frame off the connection: kind, flags, stream, payload."""
        head = self._exactly(9)
        size = int.from_bytes(head[:3], "big")
        return *struct.unpack(">BBI", head[3:]), self._exactly(size)

    def step(self):
        """Takes one frame off the connection, and notes what it says."""
        kind, flags, number, payload = self.take()
        if kind == GOAWAY:
            self.last = struct.unpack(">I", payload[:4])[0]
        if kind == GOAWAY and not self.patient:
            raise ConnectionError(f"GOAWAY {payload!r}")
        if kind == SETTINGS and not flags & ACK:
            self.frame(SETTINGS, ACK, 0)
        if kind == PING and flags & ACK:
            self.pongs += 1
        stream = self.streams.get(number)
        if stream is None:
            return
        assert not stream.ended or kind not in (DATA, HEADERS), \
            "a frame after the end of its stream"
        if kind == WINDOW_UPDATE:
            stream.grants.append(struct.unpack(">I", payload)[0])
        if kind == HEADERS:
            stream.block = payload
            if self.decoder:
                stream.headers += self.decoder.decode(payload)
        if kind == HEADERS and stream.status is None:
            stream.status = status_of(payload)
        elif kind == DATA:
            stream.body += payload
        elif kind == RST_STREAM:
            stream.reset = struct.unpack(">I", payload)[0]
        if kind == RST_STREAM or kind in (DATA, HEADERS) \
                and flags & END_STREAM:
            stream.ended = True

    def sync(self):
        """Until the server has seen all that was sent."""
        goal = self.pongs + 1
        self.frame(PING, 0, 0, bytes(8))
        while self.pongs < goal:
            self.step()

    def read(self, number):
        stream = self.streams[number]
        while not stream.ended:
            self.step()
        return stream

    def read_if_taken(self, number):
        """None: GOAWAY came before the server had it."""
        stream = self.streams[number]
        while not stream.ended:
            if self.last is not None and number > self.last:
                return None
            self.step()
        return self.streams.pop(number)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
