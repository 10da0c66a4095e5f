//! The UDT4 entity.
pub(crate) mod consts;
