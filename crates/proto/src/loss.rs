//! Missing packets: the receiver's view, and the sender's list of reports, with or without a memory of repairs.

mod recv_list;
mod repair_list;
mod send_list;

pub use recv_list::RecvList;
pub use repair_list::RepairList;
pub use send_list::SendList;
