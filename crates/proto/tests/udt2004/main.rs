//! What two endpoints of the 2004 protocol do with a path between them, all in virtual time, with the datagrams that sockets
//! would carry.
//!
//! Where a test tries many seeds, its message on failure names the one that failed.

mod claims;
mod close;
mod congestion;
mod farewell;
mod hostile;
mod scenario;
mod transfer;
