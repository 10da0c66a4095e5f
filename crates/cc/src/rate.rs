//! Controllers that govern the sending rate: UDT's family and the fixed rate.
//!
//! Shared parts: [`syn`] (once per interval), [`flow_control`] (the window), [`daimd`] (the period),
//! [`period`] (its bounds).

mod daimd;
mod fixed;
pub(crate) mod flow_control;
pub(crate) mod period;
pub(crate) mod syn;
mod udt4;
mod udt_2004;
mod udt_2007;
mod udt_2011;

pub(crate) use fixed::Fixed;
pub(crate) use udt_2004::{Options as Udt2004Options, Udt2004};
pub(crate) use udt_2007::Udt2007;
pub(crate) use udt_2011::Udt2011;
pub(crate) use udt4::Udt4;
