//! Both engines over a path in virtual time.

mod fairness;
mod far_ahead;
mod hostile;
mod shared_link;
mod transfers;
