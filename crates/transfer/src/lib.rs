//! Copies of files and trees between hosts, verified and encrypted.
//!
//! | part | owns |
//! | --- | --- |
//! | [`disk`] | files on the real disk, as the two ends of a file session |
//! | [`original`] | sessions with the original programs of Tsunami, RBUDP and SABUL |

pub mod disk;
pub mod original;
