# Thin verbs for people; anything with logic lives in xtask.

# what there is
default:
    @just --list

# everything that must hold before a merge
test:
    cargo xtask test

# the quick part of it: format, lints, tests of one crate, e.g. `just check proto`
check crate:
    cargo fmt -p farhaul-{{crate}} --check
    cargo clippy -p farhaul-{{crate}} --all-targets -- -D warnings
    cargo test -p farhaul-{{crate}}

# a long fat network on this machine alone
demo:
    cargo run --release -- demo

# figures beside the peers
bench *arguments:
    cargo xtask bench {{arguments}}

# the tests against the reference library alone
interop:
    cargo xtask interop

# everything that is published, in target/packages
package:
    cargo xtask package

# crate graph, names, links, lengths
tidy:
    cargo xtask tidy

# what the code cites
citations:
    cargo xtask citations

# accept changed snapshots after having read them
bless:
    cargo insta review

# search for inputs that break a decoder, e.g. `just fuzz wire::packet`
fuzz target:
    cargo bolero test -p farhaul-fuzz {{target}}

# the documentation of all crates
doc:
    cargo doc --workspace --no-deps --open
