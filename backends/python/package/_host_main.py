"""Started by the server as the interpreter of one instance:

    python _host_main.py CHANNEL_FD EVENT_FD SOCKET_FD PACKAGE_DIR NAME

NAME is the instance's, for lists of processes.

An error before there is a channel is sent over the socket, which is stderr
until then; descriptor 6 is what stderr is afterwards.
"""

import os
import socket
import sys


def main():
    channel, event, words = (int(a) for a in sys.argv[1:4])
    package = sys.argv[4]
    del sys.argv[1:]
    os.dup2(6, 2, inheritable=True)
    os.close(6)
    sys.path[:] = [p for p in sys.path if p != os.path.dirname(__file__)]
    sys.path.insert(0, package)
    try:
        if sys.version_info < (3, 11):
            raise RuntimeError("Python 3.11 or newer is needed, and this is "
                               + sys.version.split()[0])
        import _host_loop                   # pylint: disable=C0415
        _host_loop.attach(channel, event, words)
    except BaseException as e:              # pylint: disable=W0718
        told = socket.socket(fileno=words)
        told.send(f"{type(e).__name__}: {e}".encode()[:1900])
        sys.exit(1)
    sys.path.remove(package)
    sys.path.append(package)
    _host_loop.run(package)


if __name__ == "__main__":
    main()
