"""Started by the server as the interpreter of one instance:

    python _host_main.py CHANNEL EVENT SOCKET STDERR PACKAGE NAME

The first four are descriptors, PACKAGE is a directory, and NAME is the
instance's, for lists of processes.

Until the channel is open, stderr is a pipe to the server, where the text goes
to the log and into the reason of a failed load; afterwards it is STDERR.
"""

import os
import sys


def main():
    channel, event, socket, stderr = (int(a) for a in sys.argv[1:5])
    package = sys.argv[5]
    del sys.argv[1:]
    sys.path[:] = [p for p in sys.path if p != os.path.dirname(__file__)]
    sys.path.insert(0, package)
    if sys.version_info < (3, 11):
        sys.exit("Python 3.11 or newer is needed, and this is "
                 + sys.version.split()[0])
    import _host_loop                       # pylint: disable=C0415
    _host_loop.attach(channel, event, socket)
    os.dup2(stderr, 2)
    os.close(stderr)
    sys.path.remove(package)
    sys.path.append(package)
    _host_loop.run(package)


if __name__ == "__main__":
    main()
