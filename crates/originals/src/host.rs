//! The hosts of the dialogues: sockets, files, threads.

mod drive;
mod failure;
mod handle;
mod line;
mod memory;
mod port;
mod progress;
mod rbudp_receiver;
mod rbudp_sender;
mod sabul_receiver;
mod sabul_sender;
mod sabul_streams;
mod serve;
mod server;
mod stop;
#[cfg(test)]
mod tests;
mod tsunami_client;
mod tsunami_server;

pub use failure::Failure;
pub use handle::SessionHandle;
pub use progress::{Figures, Progress};
pub use rbudp_receiver::RbudpReceiver;
pub use sabul_receiver::SabulReceiver;
pub use sabul_sender::SabulSender;
pub use sabul_streams::StreamTerms;
pub use serve::{Given, News, Watch};
pub use server::OriginalServer;
pub use stop::Stop;
pub use tsunami_client::TsunamiClient;
