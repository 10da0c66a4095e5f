//! Both engines over a path in virtual time.

mod fairness;
mod hostile;
mod shared_link;
mod transfers;
