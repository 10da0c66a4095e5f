//! Missing packets: the receiver's view, and the sender's list of reports.

mod recv_list;
mod send_list;

pub use recv_list::RecvList;
pub use send_list::SendList;
