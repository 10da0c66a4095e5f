//! The protocols of the papers beside UDT, and the registry of all protocols by name. Unstable: the library re-exports what
//! its users may rely on.
//!
//! Each protocol is a folder that implements the traits of [`farhaul_proto`], and a row of the [`registry`]. The core does not
//! know any of them.
//!
//! | module | owns |
//! | --- | --- |
//! | [`registry`] | every protocol by name, with its options: [`Protocol`] |
//! | [`blast`] | the connection that the protocols for dedicated channels share: data by UDP, control by a reliable channel |
//! | [`rbudp`] | RBUDP: options, model, engines |
//! | [`tsunami`] | Tsunami: options, engines, the parts of its rules |
//! | [`sabul`] | SABUL: options, engines |
//! | `hurricane`, `fobs` | the engines of two more |
//! | `repair_list` | reported losses with a memory of repairs |
//! | [`udt2004`] | the protocol of the 2004 paper |
#![forbid(unsafe_code)]

#[cfg(feature = "papers")]
pub mod blast;
mod entry;
#[cfg(feature = "papers")]
mod fobs;
#[cfg(feature = "papers")]
mod hurricane;
#[cfg(feature = "papers")]
pub mod rbudp;
pub mod registry;
#[cfg(feature = "papers")]
mod repair_list;
#[cfg(feature = "papers")]
pub mod sabul;
#[cfg(feature = "papers")]
pub mod tsunami;
#[cfg(feature = "papers")]
pub mod udt2004;

#[cfg(feature = "papers")]
pub use blast::rate::RateChoice;
pub use registry::Protocol;
