//! The library between real sockets of this machine. `tests/interop` is a program of its own, because its tests need
//! libudt and run one at a time.

mod abandoned;
mod accept;
mod background;
mod blocks;
mod connect;
mod controllers;
mod custom;
mod ends;
mod freed;
mod handles;
mod leaving;
mod own_losses;
mod plain_clients;
mod probe;
mod readiness;
mod secure;
mod secure_rendezvous;
mod tasks;
mod transfer;
mod two_addresses;
mod welcome;
