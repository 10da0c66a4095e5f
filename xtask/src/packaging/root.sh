# Tries packages in a root of their own: FOLDER VERSION EXAMPLES PACKAGE…
# Runs in mount, network and process namespaces of its own, so everything that it mounts and starts ends with it.

folder=$1 version=$2 examples=$3
shift 3
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
mount -t proc proc "$folder/root/proc"
mount --rbind /dev "$folder/root/dev"
ip link set lo up
mkdir -p "$folder/root/packages"
cp "$@" "$folder/root/packages/"
cp -r "$examples" "$folder/root/packages/examples"

# What packages do to the system happens in there.
chroot "$folder/root" env VERSION="$version" sh -eu <<'INSIDE'
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
cd /packages
must() { "$@" || { echo "failed: $*" >&2; exit 1; }; }

echo '-- farhaul'
must dpkg -i farhaul_*.deb
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

if [ -e libfarhaul0_*.deb ]; then
    echo '-- libfarhaul0, libfarhaul-dev'
    must dpkg -i libfarhaul0_*.deb libfarhaul-dev_*.deb
    if command -v gcc > /dev/null; then
        flags='-Iexamples -I/usr/include -L/usr/lib/x86_64-linux-gnu -lfarhaul'
        if command -v pkg-config > /dev/null; then
            flags="-Iexamples $(pkg-config --cflags --libs farhaul)"
        fi
        must gcc -std=c11 -Wall -Werror -o hello examples/hello.c $flags -pthread
        must ./hello
        must gcc -std=c11 -o hello-static examples/hello.c -Iexamples -Wl,-Bstatic -lfarhaul -Wl,-Bdynamic -lgcc_s -pthread -lm -ldl
        must ./hello-static
    fi
fi

if [ -e farhaul-libudt0_*.deb ]; then
    echo '-- farhaul-libudt0'
    for other in libudt-dev libudt0; do
        if dpkg -s "$other" > /dev/null 2>&1; then
            must dpkg --force-depends --remove "$other"
        fi
    done
    must dpkg -i farhaul-libudt0_*.deb farhaul-libudt-dev_*.deb
    must test "$(dpkg-query -W -f '${Provides}' farhaul-libudt0)" = libudt0
    must sh -c 'ldconfig -p | grep -q libudt.so.0'
    if command -v g++ > /dev/null; then
        printf '#include <udt/udt.h>\nint main() { return UDT::startup() == 0 && UDT::cleanup() == 0 ? 0 : 1; }\n' > startup.cpp
        must g++ -o startup startup.cpp -ludt
        must ./startup
    fi
fi

echo '-- removed'
must dpkg --purge $(for file in *.deb; do dpkg-deb -f "$file" Package; done)
for gone in /usr/bin/farhaul /etc/farhaul /usr/include/farhaul.h /usr/lib/systemd/system/farhaul.service; do
    must test ! -e "$gone"
done
INSIDE
