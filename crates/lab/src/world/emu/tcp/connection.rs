//! The two ends of a kernel connection, each in a thread of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use farhaul_emu::{TcpInfo, limit_tcp_window, tcp_info};
use farhaul_proto::Stats;
use farhaul_units::Duration;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::super::control::RunControl;
use crate::scenario::flow::FlowSpec;
use crate::world::Ending;

/// The size of one write or read, in bytes.
const BLOCK: usize = 64 << 10;
/// The stack of a thread, in bytes. There may be a thousand threads, and none needs much.
const STACK: usize = 128 << 10;
/// The longest wait of a call before a check whether its time is over.
const TICK: Duration = Duration::from_millis(20);

/// Starts a thread.
pub(super) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work)
}

/// The counters of one side, over all its connections.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Bytes that the program has written or read.
    bytes: AtomicU64,
    connection: Mutex<KernelConnection>,
}

/// The present connection, and the counters of earlier ones.
#[derive(Debug, Default)]
struct KernelConnection {
    socket: Option<Arc<Socket>>,
    past: TcpInfo,
    /// The last counters of the present connection.
    last: TcpInfo,
}

impl End {
    fn lock(&self) -> MutexGuard<'_, KernelConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a socket the present connection.
    fn begin(&self, socket: Socket) -> Arc<Socket> {
        let socket = Arc::new(socket);
        self.lock().socket = Some(Arc::clone(&socket));
        socket
    }

    /// Ends the present connection. Only the caller holds its socket afterwards.
    fn retire(&self) {
        let mut connection = self.lock();
        connection.past = connection.look();
        connection.last = TcpInfo::default();
        connection.socket = None;
    }

    fn counted(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Ends the call that waits for the connection.
    pub(super) fn wake(&self) {
        if let Some(socket) = &self.lock().socket {
            // The socket may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// The sender's counters, in the form of our own transport.
    pub(super) fn sender(&self) -> Stats {
        let info = self.lock().look();
        let mut stats = Stats::default();
        stats.rtt = info.rtt;
        stats.rtt_var = info.rtt_var;
        stats.min_rtt = info.min_rtt;
        stats.cwnd = info.window;
        stats.in_flight = info.in_flight;
        stats.totals.packets_sent = info.data_packets_sent;
        stats.totals.packets_retransmitted = info.retransmitted;
        stats.totals.bytes_written = self.bytes.load(Ordering::Relaxed);
        stats.totals.bytes_acked = info.bytes_acknowledged;
        stats
    }

    /// The receiver's counters.
    pub(super) fn receiver(&self) -> Stats {
        let info = self.lock().look();
        let mut stats = Stats::default();
        stats.totals.packets_received = info.data_packets_received;
        stats.totals.acks_sent = info.packets_sent;
        // Few bytes wait to be read, because the reader does nothing else.
        stats.totals.bytes_read = self.bytes.load(Ordering::Relaxed);
        stats.totals.bytes_received = stats.totals.bytes_read;
        stats
    }
}

impl KernelConnection {
    /// The counts of all connections, and the estimates of the present one.
    fn look(&mut self) -> TcpInfo {
        if let Some(info) = self.socket.as_ref().and_then(|socket| tcp_info(&**socket).ok()) {
            self.last = info;
        }
        let (past, mut info) = (&self.past, self.last);
        info.packets_sent += past.packets_sent;
        info.data_packets_sent += past.data_packets_sent;
        info.data_packets_received += past.data_packets_received;
        info.retransmitted += past.retransmitted;
        info.bytes_acknowledged += past.bytes_acknowledged;
        info
    }
}

/// The sender of a flow.
pub(super) struct KernelSender {
    pub(super) flow: FlowSpec,
    /// The kernel's congestion control.
    pub(super) congestion_control: String,
    pub(super) peer: SockAddr,
    /// Bytes of a full packet on the wire, if its host has larger ones by default.
    pub(super) packet: Option<u32>,
    /// The transfers that are left; `None` for a single one.
    pub(super) list: Option<Arc<AtomicU32>>,
    pub(super) control: Arc<RunControl>,
    pub(super) end: Arc<End>,
    pub(super) ending: Arc<Mutex<Ending>>,
}

impl KernelSender {
    /// Makes all transfers, then ends.
    pub(super) fn run(&self) {
        if !self.control.await_time(self.flow.start) {
            return;
        }
        loop {
            if self.list.as_deref().is_some_and(|list| !take(list)) {
                return;
            }
            let begun = self.control.now();
            match self.transfer() {
                Ok(true) => self.done(begun),
                Ok(false) => return,
                Err(error) => return self.control.fail(&self.flow.name, error),
            }
            if self.list.is_none() {
                return;
            }
        }
    }

    fn done(&self, begun: Duration) {
        let now = self.control.now();
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.finished = Some(now);
        if self.list.is_some() {
            ending.transfers.push(now - begun);
        }
    }

    /// Makes one connection. Returns whether everything was sent and acknowledged.
    fn transfer(&self) -> io::Result<bool> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_congestion(self.congestion_control.as_bytes())?;
        super::limit_packets(&socket, self.packet)?;
        // Data that are not sent at the end of its time are discarded.
        socket.set_linger(Some(Duration::ZERO))?;
        let socket = self.end.begin(socket);
        let done = socket.connect(&self.peer).and_then(|()| self.fill(&socket));
        self.end.retire();
        done
    }

    fn fill(&self, mut socket: &Socket) -> io::Result<bool> {
        static ZEROS: [u8; BLOCK] = [0; BLOCK];
        socket.set_write_timeout(Some(TICK))?;
        let mut left = self.flow.bytes.unwrap_or(u64::MAX);
        while left > 0 {
            if self.control.is_over() || self.flow.stop.is_some_and(|stop| self.control.now() >= stop) {
                return Ok(false);
            }
            let length = left.min(BLOCK as u64) as usize;
            match socket.write(&ZEROS[..length]) {
                Ok(written) => {
                    self.end.counted(written);
                    left -= written as u64;
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // The other side closes after it has read everything.
        socket.shutdown(Shutdown::Write)?;
        Ok(socket.read(&mut [0])? == 0 && !self.control.is_over())
    }
}

/// Takes a transfer from a list, if there is one.
fn take(list: &AtomicU32) -> bool {
    list.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The receiver of a flow.
pub(super) struct KernelReceiver {
    pub(super) name: String,
    pub(super) listener: Arc<Socket>,
    /// The largest window to offer, in bytes.
    pub(super) window: Option<u32>,
    pub(super) control: Arc<RunControl>,
    pub(super) end: Arc<End>,
}

impl KernelReceiver {
    /// Accepts one connection after the other and reads all data.
    pub(super) fn run(&self) {
        let mut block = vec![0; BLOCK];
        while !self.control.is_over() {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => self.end.begin(socket),
                // The caller has closed its connection already.
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => continue,
                // At the end of the run, the listener is closed.
                Err(error) => return self.control.fail(&self.name, format!("cannot accept a connection: {error}")),
            };
            loop {
                match (&*socket).read(&mut block) {
                    Ok(0) => break,
                    Ok(length) => {
                        self.end.counted(length);
                        self.limit(&socket);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // The sender has discarded the rest.
                    Err(_) => break,
                }
            }
            self.end.retire();
        }
    }

    /// Limits the window again, because the kernel computes its bound anew when it knows the memory of packets.
    ///
    /// Until then the window's scale bounds it. The scale was agreed on for the limit, so the bound is less than twice
    /// the limit, or 64 KiB.
    fn limit(&self, socket: &Socket) {
        if let Some(bytes) = self.window {
            // A failure means that the connection is over. The next read reports it.
            let _ = limit_tcp_window(socket, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::emu::Trouble;

    /// The failure of a run whose receiver cannot accept callers.
    fn trouble_of(control: Arc<RunControl>) -> Option<String> {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let receiver = KernelReceiver {
            name: "t".into(),
            listener: Arc::new(listener),
            window: None,
            control: Arc::clone(&control),
            end: Arc::default(),
        };
        receiver.run();
        match control.trouble()? {
            Trouble::Broken(reason) => Some(reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_receiver_that_cannot_take_callers_ends_the_run_unless_that_is_over() {
        let trouble = trouble_of(Arc::new(RunControl::begin())).unwrap();
        assert!(trouble.starts_with("flow 't': cannot accept a connection: "), "{trouble}");
        let over = Arc::new(RunControl::begin());
        over.finish();
        assert_eq!(trouble_of(over), None);
    }
}
