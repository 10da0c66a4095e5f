#!/bin/sh
# Links the static library of the Rust part with the C++ part: FOLDER/libudt.so.0, and libudt.so beside it for linkers.
# Usage: link.sh STATIC_LIBRARY FOLDER. Exit status 77, with one line that says why, when g++ is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
library=$1
folder=$2
compiler=${CXX:-g++}

command -v "$compiler" >/dev/null || {
    echo "skip: $compiler is not installed, and libudt.so.0 needs it (Debian: apt install g++)"
    exit 77
}

mkdir -p "$folder"
# Tests link at the same time. The first one does it for all.
exec 9>"$folder/lock"
flock 9
target=$folder/libudt.so.0
sources=$(find "$here/cpp" "$here/include" "$here/link.sh" "$library" -newer "$target" -type f 2>/dev/null || echo all)
if [ -e "$target" ] && [ -z "$sources" ]; then
    echo "$target"
    exit 0
fi

# Programs may run with the one before: into a file of its own, then one rename.
scratch=$(mktemp -d "$folder/link.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# Threads of the library may run while a program unloads it, so it stays (nodelete).
"$compiler" -std=c++17 -O2 -fPIC -Wall -Wextra -Wconversion -fvisibility=hidden ${CXXFLAGS:-} \
    -shared -Wl,-soname,libudt.so.0 -Wl,--version-script="$here/cpp/libudt.map" \
    -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections -Wl,--no-undefined -Wl,--as-needed \
    -o "$scratch/libudt.so.0" "$here"/cpp/*.cpp "$library" -lpthread -ldl -lm
mv "$scratch/libudt.so.0" "$target"
ln -sf libudt.so.0 "$folder/libudt.so"
echo "$target"
