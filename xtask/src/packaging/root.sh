# Tries packages in a root of their own: FOLDER VERSION PACKAGE…, in the folder of the sources.
# Runs in mount, network and process namespaces of its own, so everything that it mounts and starts ends with it.

folder=$1 version=$2
shift 2
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
mount -t proc proc "$folder/root/proc"
mount --rbind /dev "$folder/root/dev"
ip link set lo up
mkdir -p "$folder/root/packages"
cp "$@" "$folder/root/packages/"
cp -r crates/c/examples interop "$folder/root/packages/"

# What packages do to the system happens in there.
chroot "$folder/root" env VERSION="$version" sh -eu <<'INSIDE'
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
cd /packages
must() { "$@" || { echo "failed: $*" >&2; exit 1; }; }
# apt-get tells much, of interest after a failure alone.
apt() { must sh -c 'apt-get --quiet --yes "$@" > told 2>&1 || { cat told; exit 1; }' apt "$@"; }

echo '-- farhaul'
apt install --no-install-recommends ./farhaul_*.deb
must test "$(farhaul --version)" = "farhaul $VERSION"
must test "$(stat -c %U:%a /etc/farhaul)" = farhaul:700
must grep -q farhaul /usr/share/bash-completion/completions/farhaul
if command -v systemd-analyze > /dev/null; then
    must systemd-analyze verify /usr/lib/systemd/system/farhaul.service /usr/lib/systemd/system/farhaul.socket
fi
# The daemon starts with the settings of the package, as its user, and makes its key.
set +e
timeout --signal=TERM 3 setpriv --reuid=farhaul --regid=farhaul --clear-groups \
    farhaul serve --config /etc/farhaul/serve.toml > served 2>&1
set -e
must grep -q 'serving /srv/farhaul' served
must test "$(stat -c %U:%a /etc/farhaul/host_key)" = farhaul:600

echo '-- libfarhaul0, libfarhaul-dev'
apt install --no-install-recommends ./libfarhaul0_*.deb ./libfarhaul-dev_*.deb
must gcc -std=c11 -Wall -Werror -o hello examples/hello.c -Iexamples $(pkg-config --cflags --libs farhaul) -pthread
must ./hello
must gcc -std=c11 -o hello-static examples/hello.c -Iexamples -Wl,-Bstatic -lfarhaul -Wl,-Bdynamic -lgcc_s -pthread -lm -ldl
must ./hello-static

echo '-- farhaul-libudt0, farhaul-libudt-dev'
# Programs of libudt, built with Debian's headers and library while they are there, if they are.
samples=/usr/share/doc/libudt-dev/examples
programs=
if dpkg -s libudt-dev > /dev/null 2>&1; then
    must interop/build.sh peer
    for program in sendfile recvfile; do
        if [ -e "$samples/$program.cpp" ]; then
            must g++ -w -o "$program" -I/usr/include/udt "$samples/$program.cpp" -ludt -pthread
            programs="$programs $program"
        fi
    done
fi
# Debian's leave for them.
apt install --no-install-recommends ./farhaul-libudt0_*.deb ./farhaul-libudt-dev_*.deb
must test ! -e /usr/lib/libudt.so.0
must test "$(dpkg-query -W -f '${Provides}' farhaul-libudt0)" = libudt0
must sh -c 'ldconfig -p | grep -q libudt.so.0'
# They run on the library of the package, without being built again.
must sh interop/selftest.sh peer
must ldd peer/libudt-peer > linked
must grep "$(gcc -print-multiarch)/libudt.so.0" linked
if [ "$programs" = ' sendfile recvfile' ]; then
    ./sendfile 9000 > ready &
    server=$!
    until grep -q ready ready; do must kill -0 "$server"; sleep 0.05; done
    must timeout 60 ./recvfile 127.0.0.1 9000 /packages/peer/libudt-peer /packages/received
    must cmp received peer/libudt-peer
    kill "$server"
    echo "ok    Debian's sendfile to its recvfile"
fi
# The same sources with the headers of the package.
must interop/build.sh built-here
must sh interop/selftest.sh built-here

echo '-- removed'
apt purge $(for file in *.deb; do dpkg-deb -f "$file" Package; done)
for gone in /usr/bin/farhaul /etc/farhaul /usr/include/farhaul.h /usr/include/udt /usr/lib/systemd/system/farhaul.service; do
    must test ! -e "$gone"
done
INSIDE
