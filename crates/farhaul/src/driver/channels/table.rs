//! The channels of a port by token and by connection. Tokens are never reused, so a late report meets no other channel.

use std::net::SocketAddr;

use farhaul_proto::ConnectionId;
use farhaul_udp::tcp::TcpChannel;
use farhaul_udp::{Interest, Token, Waiter};
use farhaul_units::Instant;

/// The token of the UDP socket.
pub(in crate::driver) const SOCKET: Token = Token(0);

/// The token of the listening TCP socket.
pub(super) const DOOR: Token = Token(1);
/// The token of the alarm of a [replaced](crate::driver::driver_role) driver thread.
pub(in crate::driver) const ALARM: Token = Token(2);

/// The first place of a channel, after the tokens above.
const FIRST: u32 = 3;

/// Names a channel of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    place: u32,
    /// How many channels had the place before.
    number: u32,
}

/// A channel with the driver's bookkeeping.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) tcp: TcpChannel,
    /// Its connection. `None` before the transport has accepted it and after it has forgotten it.
    pub(super) id: Option<ConnectionId>,
    /// A peer opened it.
    pub(super) accepted: bool,
    /// The peer's address, while its first bytes are awaited to tell which program it is.
    pub(super) unsorted: Option<SocketAddr>,
    /// The kernel may have bytes for it.
    pub(super) readable: bool,
    /// The kernel may take bytes of it, or its attempt to connect has ended.
    pub(super) writable: bool,
    /// It waits for its piece of work.
    pub(super) queued: bool,
    /// When it ends if its peer does nothing.
    pub(super) deadline: Option<Instant>,
    watched: Option<Interest>,
}

/// Channels by key, and keys by connection.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<ChannelPlace>,
    free: Vec<u32>,
    /// By the connections' slots.
    keys: Vec<Option<(ConnectionId, Key)>>,
}

#[derive(Debug, Default)]
struct ChannelPlace {
    number: u32,
    channel: Option<Channel>,
}

impl Key {
    pub(super) fn token(self) -> Token {
        Token(u64::from(self.number) << 32 | u64::from(self.place + FIRST))
    }

    /// The key of a channel's token. `None` for others.
    pub(super) fn of(token: Token) -> Option<Self> {
        let place = (token.0 as u32).checked_sub(FIRST)?;
        Some(Self { place, number: (token.0 >> 32) as u32 })
    }
}

impl Channel {
    pub(super) fn new(tcp: TcpChannel, accepted: bool) -> Self {
        let (id, unsorted, deadline, watched) = (None, None, None, None);
        Self { tcp, id, accepted, unsorted, readable: false, writable: false, queued: false, deadline, watched }
    }

    /// Has the waiter report what the channel waits for. Returns whether the system accepts that.
    pub(super) fn watch(&mut self, key: Key, waiter: &Waiter) -> bool {
        let wanted = self.tcp.interest();
        if wanted == self.watched {
            return true;
        }
        let result = match (self.watched, wanted) {
            (None, Some(interest)) => waiter.watch(&self.tcp, key.token(), interest),
            (_, Some(interest)) => waiter.rewatch(&self.tcp, key.token(), interest),
            (_, None) => waiter.unwatch(&self.tcp),
        };
        self.watched = wanted;
        result.is_ok()
    }
}

impl Table {
    pub(super) fn insert(&mut self, channel: Channel) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(ChannelPlace::default());
            u32::try_from(self.places.len() - 1).expect("a process has fewer descriptors")
        });
        let entry = &mut self.places[place as usize];
        entry.channel = Some(channel);
        Key { place, number: entry.number }
    }

    pub(super) fn get(&mut self, key: Key) -> Option<&mut Channel> {
        let entry = self.places.get_mut(key.place as usize).filter(|entry| entry.number == key.number)?;
        entry.channel.as_mut()
    }

    /// Removes a channel, and its connection's claim to it.
    pub(super) fn remove(&mut self, key: Key) -> Option<Channel> {
        let entry = self.places.get_mut(key.place as usize).filter(|entry| entry.number == key.number)?;
        let channel = entry.channel.take()?;
        entry.number = entry.number.wrapping_add(1);
        self.free.push(key.place);
        if let Some(id) = channel.id {
            self.keys[id.slot()].take_if(|(_, its)| *its == key);
        }
        Some(channel)
    }

    /// Makes a channel that of a connection. Returns the channel that this connection or the one before it in its slot
    /// left behind.
    pub(super) fn attach(&mut self, key: Key, id: ConnectionId) -> Option<Key> {
        if self.keys.len() <= id.slot() {
            self.keys.resize(id.slot() + 1, None);
        }
        self.get(key)?.id = Some(id);
        self.keys[id.slot()].replace((id, key)).map(|(_, old)| old)
    }

    /// Takes a connection's channel from it, because its transport forgot it.
    pub(super) fn detach(&mut self, id: ConnectionId) -> Option<Key> {
        let key = self.key_of(id)?;
        self.keys[id.slot()] = None;
        if let Some(channel) = self.get(key) {
            channel.id = None;
        }
        Some(key)
    }

    pub(super) fn key_of(&self, id: ConnectionId) -> Option<Key> {
        let (owner, key) = (*self.keys.get(id.slot())?)?;
        (owner == id).then_some(key)
    }

    /// The number of channels.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    fn channel() -> Channel {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Channel::new(TcpChannel::accepted(stream).unwrap(), true)
    }

    #[test]
    fn a_token_names_its_channel_alone_and_no_later_one_in_its_place() {
        let mut table = Table::default();
        let keys = [table.insert(channel()), table.insert(channel())];
        assert_eq!(keys.map(|key| Key::of(key.token())), keys.map(Some));
        assert_eq!([SOCKET, DOOR, ALARM].map(Key::of), [None; 3]);
        table.remove(keys[0]).unwrap();
        let later = table.insert(channel());
        assert_eq!(later.place, keys[0].place);
        assert!(table.get(keys[0]).is_none() && table.remove(keys[0]).is_none() && table.get(later).is_some());
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_connection_has_its_channel_until_either_is_gone() {
        let mut table = Table::default();
        let (old, new) = (ConnectionId::from_parts(3, 0), ConnectionId::from_parts(3, 1));
        let key = table.insert(channel());
        table.attach(key, new);
        assert_eq!([table.key_of(old), table.key_of(new), table.detach(old)], [None, Some(key), None]);
        assert_eq!(table.detach(new), Some(key));
        assert!(table.key_of(new).is_none() && table.get(key).is_some());
        assert_eq!(table.attach(key, old), None);
        let later = table.insert(channel());
        assert_eq!(table.attach(later, new), Some(key), "its owner is gone and left it behind");
        table.remove(key);
        assert_eq!(table.key_of(new), Some(later));
        table.remove(later);
        assert_eq!(table.key_of(new), None);
    }
}
