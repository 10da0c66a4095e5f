//! UDP sockets with batches, and with offloads that are switched off when they fail.
//!
//! | to change … | open |
//! | --- | --- |
//! | sending and receiving trains of datagrams | `socket.rs` |
//! | memory for received trains | `batch.rs` |
//! | errors of a send | `offload.rs` |
//! | sizes of socket buffers, and advice about them | `buffers.rs` |
//! | waiting for a socket, a thread or a deadline | `wait.rs` |
//! | the clock | `clock.rs`; in the view of a protocol: `timeline.rs` |
//! | TCP connections of control channels | `tcp.rs` |
//! | the name, speed and largest packet of an interface | `interface.rs` |
//! | datagrams that never travel in fragments | `path_socket.rs` |
//! | system calls that no safe library offers | `sys.rs` |
//!
//! A *train* is a number of datagrams of equal length, back to back in one buffer. The last may be shorter. The
//! kernel's segmentation offload (GSO) takes trains and its receive offload (GRO) returns them. Trains reach ten times
//! the rate at an eighth of the processor time, compared with one system call per datagram.

mod alarm;
mod batch;
mod buffers;
mod clock;
mod interface;
mod offload;
mod path_socket;
mod socket;
mod sys;
pub mod tcp;
mod timeline;
mod wait;

pub use alarm::Alarm;
pub use batch::{RecvBatch, Train};
pub use buffers::{BufferKind, BufferReport, RECV_BUFFER, SEND_BUFFER};
pub use clock::{Clock, Wall, thread_cpu_time};
pub use interface::{interface_mtu, interface_name, interface_rate};
pub use offload::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, SendCounters, SendStatus, Sent};
pub use path_socket::PathSocket;
pub use socket::{Options, UdpSocket};
pub use sys::{RealTime, processor_time_of_process, processor_time_of_thread};
pub use timeline::Timeline;
pub use wait::{Interest, Ready, Token, Waiter, Waker, WeakWaker};
