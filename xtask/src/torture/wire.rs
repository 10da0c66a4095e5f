//! A path in this process, whose directions a row blocks and counts.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;

/// The longest wait for a packet, so that an end is noticed.
const IDLE: Duration = Duration::from_millis(50);

/// One direction of the path.
#[derive(Debug, Default)]
pub(super) struct Direction {
    is_blocked: AtomicBool,
    /// Bytes that came, also those that were blocked.
    bytes: AtomicU64,
}

/// A path between one client and a server. It ends with its handle.
pub(super) struct Wire {
    /// Where clients reach it.
    pub(super) address: String,
    /// From the client to the server.
    pub(super) up: Arc<Direction>,
    /// From the server to the client.
    pub(super) down: Arc<Direction>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Direction {
    pub(super) fn block(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts a packet, and decides whether it goes on.
    fn carries(&self, len: usize) -> bool {
        self.bytes.fetch_add(len as u64, Ordering::Relaxed);
        !self.is_blocked.load(Ordering::Relaxed)
    }
}

impl Wire {
    /// A path to this server.
    pub(super) fn to(server: &str) -> Result<Self> {
        let (near, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        far.connect(server)?;
        [&near, &far].into_iter().try_for_each(|socket| socket.set_read_timeout(Some(IDLE)))?;
        let address = near.local_addr()?.to_string();
        let (up, down, is_over) =
            (Arc::<Direction>::default(), Arc::<Direction>::default(), Arc::<AtomicBool>::default());
        let caller = Arc::<Mutex<Option<SocketAddr>>>::default();
        let (direction, over, its) = (Arc::clone(&up), Arc::clone(&is_over), Arc::clone(&caller));
        let (from, to) = (near.try_clone()?, far.try_clone()?);
        let there = thread::spawn(move || {
            let mut packet = [0; 65_536];
            while !over.load(Ordering::Relaxed) {
                let Ok((len, client)) = from.recv_from(&mut packet) else { continue };
                *its.lock().expect("nothing fails under the lock") = Some(client);
                if direction.carries(len) {
                    let _ = to.send(&packet[..len]);
                }
            }
        });
        let (direction, over) = (Arc::clone(&down), Arc::clone(&is_over));
        let back = thread::spawn(move || {
            let mut packet = [0; 65_536];
            while !over.load(Ordering::Relaxed) {
                let Ok(len) = far.recv(&mut packet) else { continue };
                let client = *caller.lock().expect("nothing fails under the lock");
                if let Some(client) = client.filter(|_| direction.carries(len)) {
                    let _ = near.send_to(&packet[..len], client);
                }
            }
        });
        Ok(Self { address, up, down, is_over, threads: vec![there, back] })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
