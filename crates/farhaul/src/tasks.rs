//! Tasks in place of threads. The driver thread and the connections are the same. Wakers take the place of blocked
//! threads.
//!
//! **Abandoned calls.** A future takes its result in the poll that returns it. So a call that was abandoned, for instance by a time-out, has
//! taken nothing: `read`, `recv` and `accept_async` lose no byte, message and connection, and `write` and `send` have taken none. Only
//! `write_all` may have taken a part. `finish` goes on, and can be called again. An abandoned `connect_async` leaves no connection.
//!
//! An abandoned wait leaves nothing behind: dropping its future removes the waker. A stream's reads and writes have no
//! future of this crate. So a stream holds the waker of the last poll in each direction until the next poll, or until
//! it is dropped.
//!
//! No particular runtime is required. Most asynchronous code uses tokio's traits.

mod message;
mod stream;

use std::net::SocketAddr;

use farhaul_proto::Stats;

use crate::canceller::Canceller;
use crate::connection::Connection;
use crate::driver::WaitPlace;
use crate::error::Error;
use crate::message::MessageSocket;
use crate::stream::Stream;

pub use message::AsyncMessageSocket;
pub use stream::AsyncStream;

/// The methods of [`Connection`] that handles for tasks offer: all but the blocking calls and their time-outs.
macro_rules! connection_of_tasks {
    ($handle:ident, $blocking:ident) => {
        impl $handle {
            /// The same connection for blocking calls. [`set_read_timeout`](crate::Connection::set_read_timeout) and
            /// [`set_write_timeout`](crate::Connection::set_write_timeout) affect only these.
            pub fn as_blocking(&self) -> &$blocking {
                &self.inner
            }

            /// Waits until the peer has acknowledged everything that was written, then closes the connection.
            /// [`Connection::finish`](crate::Connection::finish) describes the effect on reading.
            ///
            /// # Errors
            /// The connection was lost before that, or a canceller ended the call.
            pub async fn finish(&self) -> Result<(), Error> {
                finish(&self.inner).await
            }

            /// Begins to finish and returns at once: see
            /// [`Connection::finish_in_background`](crate::Connection::finish_in_background).
            pub fn finish_in_background(&self) {
                self.inner.finish_in_background();
            }

            /// Ends the connection at once, because this side cannot go on. The peer does not take its data for the
            /// whole stream: see [`Connection::abort`](crate::Connection::abort).
            pub fn abort(&self) {
                self.inner.abort();
            }

            /// The address of the peer.
            pub fn peer_addr(&self) -> SocketAddr {
                self.inner.peer_addr()
            }

            /// The address of this side's UDP port.
            pub fn local_addr(&self) -> SocketAddr {
                self.inner.local_addr()
            }

            /// Sends a user-defined control packet to the peer's congestion controller: see
            /// [`Connection::send_custom`](crate::Connection::send_custom).
            ///
            /// # Errors
            /// The body is too long; the connection is over.
            pub fn send_custom(&self, kind: u16, body: &[u8]) -> Result<(), Error> {
                self.inner.send_custom(kind, body)
            }

            /// Counters and estimates, as UDT's `perfmon` gives them and more.
            ///
            /// # Errors
            /// The endpoint's driver thread is gone.
            pub fn stats(&self) -> Result<Stats, Error> {
                self.inner.stats()
            }

            /// Returns a handle that ends the waiting calls of this connection, those of tasks and those of threads.
            /// Until [`reset`](Canceller::reset), later calls that would wait end too.
            pub fn canceller(&self) -> Canceller {
                self.inner.canceller()
            }
        }
    };
}

connection_of_tasks!(AsyncStream, Stream);
connection_of_tasks!(AsyncMessageSocket, MessageSocket);

async fn finish(connection: &Connection) -> Result<(), Error> {
    connection.begin_to_finish()?;
    connection.wait(WaitPlace::Change(connection.id()), connection.is_finished()).await
}
