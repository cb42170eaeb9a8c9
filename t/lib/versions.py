"""The module and the core as builds that speak other versions of the channel:
the files that name the version are compiled once more, with other numbers."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess

from lib.server import BUILD, CORE, MODULE, ROOT

NAMES = ("INF_CHANNEL_VERSION", "INF_CHANNEL_MIN_VERSION")


def numbers():
    """(version, lowest) of this build."""
    text = (ROOT / "core/include/channel.h").read_text()
    return tuple(int(re.search(rf"#define {name} +(\d+)u", text)[1])
                 for name in NAMES)


def core(folder, version, lowest):
    """The program, in a directory of its own."""
    commands = {
        entry["file"]: shlex.split(entry["command"]) for entry in json.loads(
            (BUILD / "compile_commands.json").read_text())}
    link = shlex.split(subprocess.run(
        ["ninja", "-C", BUILD, "-t", "commands", "-s", "libtritonserver.so"],
        capture_output=True, text=True, check=True).stdout)
    objects = {}
    for file in sources("core/wire/*.c"):
        command = commands[str(file)]
        name = command[command.index("-o") + 1]
        objects[name] = compiled(folder, command, version, lowest, BUILD)
    link = link[link.index("&&") + 1:]          # ninja's shell: ": && CC ..."
    link = [objects.get(word, word) for word in link[:link.index("&&")]]
    at = link.index("-o") + 1
    link[at] = folder / "libtritonserver.so"
    subprocess.run(link, cwd=BUILD, check=True)
    shutil.copy(CORE, folder)
    return folder / CORE.name


def module(folder, version, lowest):
    """The module's library."""
    copy = folder / "nginx-src"
    shutil.copytree(BUILD / "nginx-src", copy, symlinks=True,
                    ignore=shutil.ignore_patterns("contrib", "man"))
    for file in sources("ngx_module/*.c", "core/wire/client*.c",
                        "core/wire/ring.c"):
        for made in (copy / "objs/addon").glob(
                f"{file.parent.name}/{file.stem}.o"):
            made.unlink()
    (copy / "objs" / MODULE.name).unlink()
    flags = re.search(r"^CFLAGS = +(.*)$", (copy / "objs/Makefile").read_text(),
                      re.MULTILINE)[1]
    subprocess.run(
        ["make", "-s", "-f", "objs/Makefile", "modules",
         " ".join([f"CFLAGS={flags}", *defines(version, lowest)])],
        cwd=copy, check=True)
    return copy / "objs" / MODULE.name


def sources(*patterns):
    return [file for pattern in patterns
            for file in sorted(pathlib.Path(ROOT).glob(pattern))
            if NAMES[0] in file.read_text()]


def defines(*values):
    return [f"-D{name}={value}u" for name, value in zip(NAMES, values)]


def compiled(folder, command, version, lowest, cwd):
    command = list(command)
    at = command.index("-o") + 1
    made = folder / pathlib.Path(command[at]).name
    command[at] = made
    subprocess.run([*command[:1], *defines(version, lowest), *command[1:]],
                   cwd=cwd, check=True)
    return made
