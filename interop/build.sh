#!/bin/sh
# Builds libudt-peer and prints its path. Nothing is done when the program is newer than its sources.
# Usage: interop/build.sh [FOLDER]; default ${CARGO_TARGET_DIR:-target}/interop.
# Exit status 77, with one line that says why, when g++ or libudt is missing.
set -eu

sources=$(cd "$(dirname "$0")" && pwd)
folder=${1:-${CARGO_TARGET_DIR:-$sources/../target}/interop}
compiler=${CXX:-g++}

skip() {
    echo "skip: $1"
    exit 77
}

mkdir -p "$folder"
program=$(cd "$folder" && pwd)/libudt-peer
if [ -x "$program" ] && [ -z "$(find "$sources" -newer "$program" \( -name '*.cpp' -o -name '*.h' -o -name build.sh \))" ]; then
    echo "$program"
    exit 0
fi

command -v "$compiler" >/dev/null || skip "$compiler is not installed, so there is no reference peer (Debian: apt install g++)"

# Tests may build at the same time: each into its own file, then one rename.
scratch=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/probe.cpp" <<'PROBE'
#if __has_include(<udt/udt.h>)
#include <udt/udt.h>
#else
#include <udt.h>
#endif
int main() { return UDT::startup(); }
PROBE
"$compiler" -std=c++17 -o "$scratch/probe" "$scratch/probe.cpp" -ludt -lpthread 2>/dev/null ||
    skip "libudt is not installed, so there is no reference peer (Debian: apt install libudt-dev)"

"$compiler" -O2 -std=c++17 -Wall -Wextra ${CXXFLAGS:-} -o "$scratch/libudt-peer" "$sources"/*.cpp -ludt -lpthread
mv "$scratch/libudt-peer" "$program"
echo "$program"
