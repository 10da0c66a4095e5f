//! Measured streams over UDP alone: the stable control stream and the throughput profile (paper:ornl).
//!
//! | part | owns |
//! | --- | --- |
//! | [`Responder`] | the far end of both: counts what arrives and acknowledges it |
//! | [`StableStream`] | a stream whose goodput settles at a target |
//! | [`Blaster`] | a stream of W_c datagrams every T_s, whose goodput, loss and delay are measured |
//! | `robbins_monro` | the law of the stable stream |
//! | `delays` | mean, deviation and quantiles of round trips |

mod blaster;
mod delays;
mod responder;
mod robbins_monro;
mod stable;

pub use blaster::{Blaster, BlasterConfig, BlasterFigures};
pub use delays::Delays;
pub use responder::Responder;
pub use robbins_monro::RobbinsMonro;
pub use stable::{StableConfig, StableFigures, StableStream};

#[cfg(test)]
mod tests;
