//! What two endpoints of the 2004 protocol do with a path between them, all in virtual time, with the datagrams that sockets
//! would carry.

mod congestion;
mod scenario;
mod transfer;
