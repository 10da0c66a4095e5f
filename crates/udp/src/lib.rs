//! UDP sockets in batches, with offloads that switch themselves off.
//!
//! | to change … | open |
//! | --- | --- |
//! | sending and receiving trains of datagrams | `socket.rs` |
//! | memory for received trains | `batch.rs` |
//! | what happens when the kernel refuses to send | `offload.rs` |
//! | how large socket buffers are, and the advice when they are not | `buffers.rs` |
//! | sleeping until a socket, a thread or a deadline calls | `wait.rs` |
//! | where real time enters | `clock.rs` |
//! | system calls that no safe library offers | `sys.rs` |
//!
//! A *train* is a number of datagrams of equal length, back to back in one buffer, of which the last may be shorter:
//! what the kernel's segmentation offload (GSO) takes and its receive offload (GRO) gives. Trains are what makes UDP
//! fast: ten times the rate at an eighth of the processor time, compared with one system call per datagram.

mod batch;
mod buffers;
mod clock;
mod offload;

mod socket;
mod sys;
mod wait;

pub use batch::{RecvBatch, Train};
pub use buffers::{BufferKind, BufferReport, RECV_BUFFER, SEND_BUFFER};
pub use clock::{Clock, Wall, thread_cpu_time};
pub use offload::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, SendCounters, SendStatus, Sent};
pub use socket::{Options, UdpSocket};
pub use sys::RealTime;
pub use wait::{Interest, Ready, Token, Waiter, Waker};
