//! The sockets of libudt 4.11 on Farhaul. With the C++ part in `cpp/` it becomes `libudt.so.0`, on which programs that were
//! built against libudt run without being rebuilt.
//!
//! ```text
//!   a program of libudt
//!        │  namespace UDT, CUDTException, CCC: C++
//!        ▼
//!   cpp/*.cpp          std::set, std::fstream, exceptions, virtual functions
//!        │  fh_udt_*: C
//!        ▼
//!   border             pointers, panics, callbacks that call back
//!        ▼
//!   table ─▶ socket ─▶ port ─▶ farhaul
//!              └─▶ transfer, closing, select, epoll, trace, controller
//! ```
//!
//! | to change | open |
//! | --- | --- |
//! | what a C++ function does with C++ types | `cpp/` |
//! | the functions that C++ calls, and their arguments | `border.rs`, `border/`; their C declarations: `cpp/border.h` |
//! | codes of errors, and which error of Farhaul has which | `failure.rs` |
//! | options: types, ranges, when they may be set | `options.rs` |
//! | states of a socket: bind, listen, accept, connect | `socket.rs`, `socket/` |
//! | one UDP port for several sockets | `port.rs` |
//! | send, recv, sendmsg, recvmsg | `transfer.rs` |
//! | what close waits for | `closing.rs` |
//! | readiness for select and epoll | `events.rs`, `socket/looking.rs`, `select.rs`, `epoll.rs` |
//! | perfmon | `trace.rs` |
//! | CCC subclasses as controllers | `controller.rs`, `controller/` |
//!
//! `unsafe` is in `border`, `controller/foreign.rs`, `descriptor.rs` and `sockaddr.rs` alone.

mod border;
mod clock;
mod closing;
mod controller;
mod descriptor;
mod epoll;
mod events;
mod failure;
mod options;
mod port;
mod select;
mod sockaddr;
mod socket;
mod table;
mod trace;
mod transfer;
mod wait;
