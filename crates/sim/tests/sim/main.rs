//! The simulator as its users see it: hosts, links and transports in virtual time.

mod background;
mod book;
mod channel;
mod conformance;
mod dumbbell;
mod generations;
mod own_losses;
mod packet_size;
mod pair;
mod rate_cap;
mod shared_channel;
mod toy;
mod window_controllers;
