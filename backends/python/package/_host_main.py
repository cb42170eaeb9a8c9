"""Started by the server as the interpreter of one instance:

    python _host_main.py CHANNEL EVENT SOCKET STDERR PIPE PACKAGE NAME

The first five are descriptors, PACKAGE is a directory, and NAME is the
instance's, for lists of processes.

Until the channel is open, stderr is PIPE, whose text the server logs and adds to
the reason of a failed load; afterwards it is STDERR, unless a wrapper of the
interpreter has redirected it.
"""

import os
import sys


def main():
    channel, event, socket, stderr, pipe = (int(a) for a in sys.argv[1:6])
    package = sys.argv[6]
    del sys.argv[1:]
    sys.path[:] = [p for p in sys.path if p != os.path.dirname(__file__)]
    sys.path.insert(0, package)
    if sys.version_info < (3, 11):
        sys.exit("Python 3.11 or newer is needed, and this is "
                 + sys.version.split()[0])
    import _host_loop                       # pylint: disable=C0415
    _host_loop.attach(channel, event, socket)
    if sys.stderr is not None and os.path.sameopenfile(2, pipe):
        os.dup2(stderr, 2)
    os.close(stderr)
    os.close(pipe)
    sys.path.remove(package)
    sys.path.append(package)
    _host_loop.run(package)


if __name__ == "__main__":
    main()
