//! Both engines over a path in virtual time.

mod fairness;
mod shared_link;
mod transfers;
