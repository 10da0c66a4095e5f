//! Fuzz targets, one module per crate that reads untrusted bytes.
//!
//! Plain `cargo test -p farhaul-fuzz` replays the corpora in `__fuzz__/<target>/corpus` and a thousand random inputs
//! per target. For a longer, coverage-guided search: `cargo bolero test -p farhaul-fuzz wire::packet`. Add an input
//! that once failed to the corpus, with a name that describes it.
#![forbid(unsafe_code)]

#[cfg(test)]
mod fobs;
#[cfg(test)]
mod hurricane;
#[cfg(test)]
mod original;
#[cfg(test)]
mod proto;
#[cfg(test)]
mod rbudp;
#[cfg(test)]
mod sabul;
#[cfg(test)]
mod secure;
#[cfg(test)]
mod session;
#[cfg(test)]
mod tsunami;
#[cfg(test)]
mod wire;

/// Without these checks, a sum of a peer's numbers that overflows passes unseen.
#[test]
fn replays_check_arithmetic() {
    let sum = || std::hint::black_box(u8::MAX) + std::hint::black_box(1);
    assert!(std::panic::catch_unwind(sum).is_err());
}
