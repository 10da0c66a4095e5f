//! Fuzz targets, one module per crate that reads bytes from strangers.
//!
//! Plain `cargo test -p farhaul-fuzz` replays the corpora in `__fuzz__/<target>/corpus` and a thousand random inputs per
//! target. To search for longer, with coverage as the guide: `cargo bolero test -p farhaul-fuzz wire::packet`. An input
//! that once failed belongs in the corpus, under a name that says what it did.
#![forbid(unsafe_code)]

#[cfg(test)]
mod proto;
#[cfg(test)]
mod session;
#[cfg(test)]
mod wire;
