//! Whole endpoints with a path between them, in virtual time.
//!
//! | module | subject |
//! | --- | --- |
//! | `attack`, `attack_secure` | the attacks of the security design, plain and encrypted |
//! | `behaviour` | behaviour of UDT4 |
//! | `secure`, `secure_rendezvous`, `migration` | secure connections |
//! | `two_addresses` | ports of hosts with two addresses |

mod attack;
mod attack_secure;
mod behaviour;
mod migration;
mod secure;
mod secure_rendezvous;
mod two_addresses;
