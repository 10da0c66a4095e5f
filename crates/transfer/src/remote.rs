//! The program on the remote host, which ssh starts for one copy or command.
//!
//! ```text
//! near                                   far: `farhaul bootstrap`, started by ssh
//!  Hello {key, task, options}      →     also the whole stream of a push of small files, or a request
//!                                   ←    noise of login shells, the mark, Ready {key, port, address}
//!  the copy, through ssh at first  ⇄     messages of both, beside the copy
//!  UDP: secure handshake, a flow   ⇄     admits the key of the Hello alone
//!                                   ←    Stored {numbers, digest}, if it received
//!  end of its input                →     stops
//! ```
//!
//! With `--detach`, the remote program goes on without ssh once the copy has begun. It then ends with the connection of the copy.
//!
//! Only public keys cross the SSH connection. Both key pairs are made for one copy, and live in memory.
//!
//! The remote program itself is [`bootstrap`](crate::bootstrap).
//!
//! | part | owns |
//! | --- | --- |
//! | `messages` | what both programs say |
//! | `scope` | what a copy brings, in those messages |
//! | `frames` | messages in a stream of bytes, behind the noise |
//! | `ssh` | the options, and the command line of ssh |
//! | `inbox` | messages of the remote program that wait |
//! | `child` | the remote program as a child process |
//! | `process` | the process of ssh: its pipes and its end |
//! | `reach` | its start, and the path to it |
//! | `refusal` | why a remote program does not begin |
//! | `ssh_monitor` | the loss of ssh, which ends the copy |
//! | `install` | a copy of this program for the remote host |
//! | `attempt` | the call over UDP, beside ssh or before it |
//! | `stdout` | what the remote program writes to its stdout |
//! | `words` | what ssh and the remote side say on stderr |

mod attempt;
mod child;
pub(crate) mod frames;
mod inbox;
mod install;
pub(crate) mod messages;
mod process;
pub(crate) mod reach;
mod refusal;
pub(crate) mod scope;
mod ssh;
mod ssh_monitor;
pub(crate) mod stdout;
mod words;

pub use child::peer_knows_of_the_end;
pub(crate) use child::{RemoteMux, RemoteProgram, ssh_tells_the_end};
pub(crate) use process::widen;
pub use reach::{Answering, Other};
pub use ssh::{RUNS_COMMANDS, Ssh, setting};
