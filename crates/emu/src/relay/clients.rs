//! The relay's clients, with one upstream socket per client address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use farhaul_units::{Duration, Instant};

use farhaul_udp::{Interest, Options, Token, UdpSocket, Waiter};

/// Most clients at a time. Each needs a socket.
const MAX_CLIENTS: usize = 64;

/// A client idle for this long in both directions can be replaced by a new one. Home routers keep a UDP flow as long.
const IDLE: Duration = Duration::from_secs(60);

/// Identifies a client. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientId {
    slot: usize,
    serial: u64,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) addr: SocketAddr,
    /// The address of the relay to which it sent, and takes answers from.
    pub(super) relay_addr: Option<IpAddr>,
    pub(super) upstream: UdpSocket,
    serial: u64,
    last_seen: Instant,
}

/// All clients.
#[derive(Debug)]
pub(super) struct Clients {
    to: SocketAddr,
    clients: Vec<Client>,
    /// Number of clients so far, and the serial number of the next.
    pub(super) served: u64,
    /// Datagrams refused because all places were taken.
    pub(super) refused: u64,
    /// Kernel drops at sockets that are closed now.
    drops: u64,
}

impl Clients {
    pub(super) fn new(to: SocketAddr) -> Self {
        Self { to, clients: Vec::new(), served: 0, refused: 0, drops: 0 }
    }

    /// The client at `addr`, active at `now`. A new client if there is a place, otherwise `None`.
    pub(super) fn at(
        &mut self,
        (addr, relay_addr): (SocketAddr, Option<IpAddr>),
        now: Instant,
        waiter: &Waiter,
    ) -> io::Result<Option<ClientId>> {
        if let Some(slot) = self.clients.iter().position(|client| client.addr == addr) {
            self.clients[slot].last_seen = now;
            return Ok(Some(ClientId { slot, serial: self.clients[slot].serial }));
        }
        let Some(slot) = self.place_for_another(now) else {
            self.refused += 1;
            return Ok(None);
        };
        let local = match self.to {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let upstream = UdpSocket::bind(local, socket_options())?;
        waiter.watch(&upstream, Self::token(slot), Interest::Readable)?;
        let client = Client { addr, relay_addr, upstream, serial: self.served, last_seen: now };
        self.served += 1;
        let id = ClientId { slot, serial: client.serial };
        match self.clients.get_mut(slot) {
            Some(place) => {
                self.drops += drops(&place.upstream);
                *place = client;
            }
            None => self.clients.push(client),
        }
        Ok(Some(id))
    }

    /// The client with this id, unless it was replaced.
    pub(super) fn get(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id.slot).filter(|client| client.serial == id.serial)
    }

    /// The client of the upstream socket `token`, active at `now`.
    pub(super) fn by_token(&mut self, token: Token, now: Instant) -> Option<(ClientId, &Client)> {
        let slot = usize::try_from(token.0).ok()?;
        let client = self.clients.get_mut(slot)?;
        client.last_seen = now;
        Some((ClientId { slot, serial: client.serial }, client))
    }

    /// Kernel drops at all upstream sockets.
    pub(super) fn drops(&self) -> u64 {
        self.drops + self.clients.iter().map(|client| drops(&client.upstream)).sum::<u64>()
    }

    /// A free place, or the place of the longest idle client if it is idle long enough.
    fn place_for_another(&self, now: Instant) -> Option<usize> {
        if self.clients.len() < MAX_CLIENTS {
            return Some(self.clients.len());
        }
        let (slot, longest) = self.clients.iter().enumerate().min_by_key(|(_, client)| client.last_seen)?;
        (now - longest.last_seen >= IDLE).then_some(slot)
    }

    fn token(slot: usize) -> Token {
        Token(slot as u64)
    }
}

/// Options of the relay's sockets: large buffers, offloads, and the kernel's arrival timestamps.
pub(super) fn socket_options() -> Options {
    Options { timestamps: true, ..Options::default() }
}

pub(super) fn drops(socket: &UdpSocket) -> u64 {
    // Old systems have no drop counter. On them only lateness reveals an overload.
    socket.recv_drops().map_or(0, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(port: u16) -> (SocketAddr, Option<IpAddr>) {
        (SocketAddr::from(([127, 0, 0, 1], port)), None)
    }

    #[test]
    fn clients_are_bounded_and_only_idle_ones_are_replaced() {
        let waiter = Waiter::new().unwrap();
        let mut clients = Clients::new(addr(9).0);
        let first = clients.at(addr(1_000), Instant::ZERO, &waiter).unwrap().unwrap();
        for port in 1..MAX_CLIENTS as u16 {
            assert!(clients.at(addr(1_000 + port), Instant::ZERO + IDLE / 2, &waiter).unwrap().is_some());
        }
        assert_eq!(clients.at(addr(1_000), Instant::ZERO, &waiter).unwrap(), Some(first));
        assert_eq!(clients.at(addr(9_000), Instant::ZERO + IDLE / 2, &waiter).unwrap(), None);
        let late = clients.at(addr(9_000), Instant::ZERO + IDLE, &waiter).unwrap().unwrap();
        assert!(clients.get(first).is_none(), "its packets must not reach another");
        assert_eq!(clients.get(late).unwrap().addr, addr(9_000).0);
        assert_eq!((clients.served, clients.refused), (MAX_CLIENTS as u64 + 1, 1));
    }
}
