//! Whole endpoints with the keys of TLS, in virtual time.

mod downgrade;
mod key_update;
mod migration;
mod refusal;
