//! Whole endpoints with a path between them, in virtual time.
//!
//! | module | subject |
//! | --- | --- |
//! | `every_protocol`, `encapsulated` | every protocol of the registry, plain and encrypted |
//! | `carriers` | the same on the simplest network: the ends of connections and of their carriers, attacks |
//! | `measured_streams` | measured streams at ports of every protocol |
//! | `found_rate` | rates that a sender finds by itself |
//! | `udt2004` | behaviour of the protocol of 2004 |
//! | `wrong_controllers` | controllers that panic, or set something unusable |

mod carriers;
mod encapsulated;
mod every_protocol;
mod found_rate;
mod measured_streams;
#[expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]
#[path = "../../../proto/src/secure/tests/pair.rs"]
mod pair;
mod udt2004;
mod wrong_controllers;
