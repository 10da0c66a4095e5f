//! The proof that a caller receives at its address: an encrypted note that it shows again.

use core::net::{IpAddr, SocketAddr};

use farhaul_units::{Duration, Instant};

use super::client_id::ClientId;

/// A token is valid for so long.
const LIFETIME: Duration = Duration::from_secs(10);

/// The content of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) from: SocketAddr,
    pub(super) client_id: ClientId,
    /// The time of its making, or of the check.
    pub(super) made: Instant,
}

impl Token {
    /// The bytes to be encrypted: the time, the address, and the client's random bytes.
    pub(super) fn content(&self) -> Vec<u8> {
        let millis = u64::try_from((self.made - Instant::ZERO).as_millis()).unwrap_or(u64::MAX);
        let mut content = millis.to_be_bytes().to_vec();
        content.extend_from_slice(&self.from.port().to_be_bytes());
        // All addresses have one length, so that no content of one caller is also that of another.
        let ip = match self.from.ip().to_canonical() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        content.extend_from_slice(&ip.octets());
        content.extend_from_slice(self.client_id.bytes());
        content
    }

    /// Whether this content was made for the same caller, and not too long ago.
    pub(super) fn admits(&self, content: &[u8]) -> bool {
        self.admits_within(content, LIFETIME)
    }

    /// The same with another lifetime.
    pub(super) fn admits_within(&self, content: &[u8], lifetime: Duration) -> bool {
        let own = self.content();
        let (Some((made, rest)), Some((now, same))) = (content.split_first_chunk(), own.split_first_chunk()) else {
            return false;
        };
        let age = u64::from_be_bytes(*now).checked_sub(u64::from_be_bytes(*made));
        rest == same && age.is_some_and(|millis| Duration::from_millis(millis) <= lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_have_tokens_of_their_own() {
        let made = Instant::ZERO;
        let four = Token { from: ([38, 0, 1, 2], 5).into(), client_id: ClientId::new(&[7; 20]).unwrap(), made };
        let ip = core::net::Ipv6Addr::from([38, 0, 1, 2, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        let six = Token { from: (ip, 5).into(), client_id: ClientId::new(&[7; 8]).unwrap(), made };
        assert!(!six.admits(&four.content()));
    }

    #[test]
    fn a_token_admits_its_caller_for_ten_seconds() {
        let client_id = ClientId::new(&[7; 16]).unwrap();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let token = |port, seconds| Token { from: ([10, 0, 0, 1], port).into(), client_id, made: at(seconds) };
        let content = token(5, 100).content();
        assert!(token(5, 110).admits(&content));
        assert!(!token(5, 111).admits(&content), "too old");
        assert!(!token(5, 99).admits(&content), "of the future");
        assert!(!token(6, 100).admits(&content), "another port");
        assert!(!token(5, 100).admits(&content[..content.len() - 1]), "cut");
    }
}
