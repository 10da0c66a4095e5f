#!/bin/sh
# Makes libfarhaul.so.0 of the static library: link.sh STATIC_LIBRARY FOLDER
#
# The version script exports farhaul_* and nothing of Rust. rustc has one of its own for a cdylib, which has no versions, and the
# linker takes one alone. The library stays loaded when a program has closed it,
# because its threads may run.
set -eu
here=$(dirname "$0")
${CC:-cc} -shared -o "$2/libfarhaul.so.0" -Wl,-soname,libfarhaul.so.0 -Wl,--version-script="$here/farhaul.map" -Wl,-z,nodelete \
    -Wl,-z,defs -Wl,-z,relro,-z,now -Wl,--gc-sections -Wl,--whole-archive "$1" -Wl,--no-whole-archive -lgcc_s -lpthread -ldl -lm -lc
ln -sf libfarhaul.so.0 "$2/libfarhaul.so"
