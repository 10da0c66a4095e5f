//! Path models between real sockets: the relay, and networks of hosts.

mod network;
mod relay;
mod requirement;
