//! Which packets are missing: as the receiver sees it, and as the sender is told.

mod recv_list;
mod send_list;

pub(crate) use recv_list::RecvList;
pub(crate) use send_list::SendList;
