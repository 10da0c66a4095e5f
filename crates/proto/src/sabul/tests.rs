//! Both engines over a path in virtual time.

mod transfers;
