//! Whole endpoints with a path between them, in virtual time.
//!
//! | module | subject |
//! | --- | --- |
//! | `attack`, `attack_secure` | the attacks of the security design, plain and encrypted |
//! | `behaviour`, `udt2004` | behaviour of UDT4 and of the protocol of 2004 |
//! | `protocols`, `encapsulated` | every protocol of the registry, plain and encrypted |
//! | `secure`, `secure_rendezvous`, `migration` | secure connections |
//! | `found_rate` | rates that a sender finds by itself |

mod attack;
mod attack_secure;
mod behaviour;
mod encapsulated;
mod found_rate;
mod migration;
mod protocols;
mod secure;
mod secure_rendezvous;
mod udt2004;
