"""make module NGINX=: the module for one very program."""

import os
import pathlib
import subprocess

from lib.server import NGINX, ROOT

DEBIAN_SOURCE = pathlib.Path("/usr/share/nginx/src")

# Arguments of nginx.org's packages, and options whose libraries lay
# on the machine that built the program.
ARGUMENTS = (
    "--prefix=/etc/nginx --modules-path=/usr/lib/nginx/modules --user=nginx "
    "--with-compat --with-file-aio --with-threads --with-http_ssl_module "
    "--with-http_v2_module --with-stream --with-mail=dynamic "
    "--with-http_xslt_module=dynamic --with-http_geoip_module "
    "--with-http_perl_module --add-module=/builder/brotli "
    "--add-dynamic-module=/builder/njs --with-openssl=/builder/openssl-3 "
    "--with-openssl-opt='no-tests no-shared' --with-pcre=../pcre "
    "--with-cc-opt='-g -O2 -ffile-prefix-map=/builder/nginx=. -Wformat "
    "-DNGX_HTTP_EXTRA=1 -Wp,-D_FORTIFY_SOURCE=2 -fPIC' "
    "--with-ld-opt='-Wl,-z,relro -Wl,--as-needed -pie'")


def program(path, arguments, version="1.22.1", rest="exit 1"):
    """A program that says of itself what nginx -V would."""
    path.write_text(f"""#!/bin/sh
if [ "$1" = -V ]; then
    echo 'nginx version: nginx/{version} (Test)' >&2
    cat >&2 <<'END'
configure arguments: {arguments}
END
    exit 0
fi
{rest}
""")
    path.chmod(0o755)
    return path


def configured(folder, nginx, cc="-O2 -ours", ld="-Wl,-ours"):
    """The words that nginx's configure is called with."""
    configure = folder / "configure"
    configure.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" > words\n")
    configure.chmod(0o755)
    subprocess.run(["bash", ROOT / "tools/nginx-configure.bash", "/module",
                    cc, ld], cwd=folder, check=True,
                   env={**os.environ, "NGINX_PROGRAM": str(nginx)})
    return (folder / "words").read_text().splitlines()


def test_arguments_are_those_of_the_program(tmp_path):
    words = configured(tmp_path, program(tmp_path / "nginx", ARGUMENTS))
    assert words == [
        "--prefix=/etc/nginx", "--modules-path=/usr/lib/nginx/modules",
        "--user=nginx", "--with-compat", "--with-file-aio", "--with-threads",
        "--with-http_ssl_module", "--with-http_v2_module", "--with-stream",
        "--with-cc-opt= -g -O2 -Wformat -DNGX_HTTP_EXTRA=1 -fPIC -O2 -ours"
        " -fPIC -Wno-error",
        "--with-ld-opt= -Wl,-z,relro -Wl,--as-needed -Wl,-ours",
        "--add-dynamic-module=/module"]


def test_words_of_the_program_are_not_run(tmp_path):
    mark = tmp_path / "ran"
    nginx = program(tmp_path / "nginx",
                    f"--with-threads '--user=$(touch {mark})' --x=`id` --y=*")
    words = configured(tmp_path, nginx)
    assert f"--user=$(touch {mark})" in words
    assert "--x=`id`" in words
    assert "--y=*" in words
    assert not mark.exists()


def test_a_program_without_arguments(tmp_path):
    words = configured(tmp_path, program(tmp_path / "nginx", ""))
    assert words == ["--with-cc-opt=-O2 -ours -fPIC -Wno-error",
                     "--with-ld-opt=-Wl,-ours",
                     "--add-dynamic-module=/module"]


def make_module(build, nginx, source=None):
    return subprocess.run(
        ["make", "-s", "module", f"NGINX={nginx}", f"BUILD={build}",
         *([f"NGINX_SRC={source}"] if source else [])],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


def test_sources_of_another_version_are_named(tmp_path):
    nginx = program(tmp_path / "nginx", "--with-compat", version="1.99.7")
    done = make_module(tmp_path / "build", nginx, DEBIAN_SOURCE)
    assert done.returncode != 0
    assert f'"{nginx}" is nginx 1.99.7, the sources in' in done.stderr
    assert "unpack nginx-1.99.7.tar.gz" in done.stderr
    assert not list((tmp_path / "build").glob("*.so"))


def test_missing_sources_are_named(tmp_path):
    done = make_module(tmp_path / "build", NGINX, tmp_path)
    assert done.returncode != 0
    assert f'no nginx sources in "{tmp_path}"' in done.stderr
    assert "NGINX_SRC=DIR" in done.stderr


def test_a_program_that_is_none_is_named(tmp_path):
    done = make_module(tmp_path / "build", tmp_path / "none", DEBIAN_SOURCE)
    assert done.returncode != 0
    assert f'cannot run "{tmp_path}/none -V"' in done.stderr


def test_the_program_loads_what_was_built(tmp_path):
    """For the nginx of these tests; a program that does not load it gets
    nothing."""
    source = DEBIAN_SOURCE
    if os.environ.get("INF_NGINX"):
        source = pathlib.Path(NGINX).resolve().parents[1]
    build = tmp_path / "build"
    done = make_module(build, NGINX, source)
    assert done.returncode == 0, done.stderr
    module = build / "ngx_http_inference_module.so"
    assert module.is_file()

    module.unlink()
    other = tmp_path / "nginx"
    other.write_text(f"""#!/bin/sh
[ "$1" != -V ] || exec {NGINX} -V
echo 'is not binary compatible' >&2
exit 1
""")
    other.chmod(0o755)
    done = make_module(build, other, source)
    assert done.returncode != 0
    assert "is not binary compatible" in done.stderr
    assert f'"{other}" does not load the module' in done.stderr
    assert not module.exists()
