//! Controllers as their users see them: curves of scripted events, and invariants under any behaviour of the peer.

mod curves;
mod properties;
mod response;
