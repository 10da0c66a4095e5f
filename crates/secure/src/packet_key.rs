//! The packet keys of rustls as packet protection needs them.

use farhaul_proto::secure::{Generations, Keys, PacketKey};
use farhaul_wire::secure::{PacketNumber, TAG_LEN};
use rustls::quic;

/// One key.
struct Key(Box<dyn quic::PacketKey>);

impl PacketKey for Key {
    fn seal(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> [u8; TAG_LEN] {
        let sealed = self.0.encrypt_in_place(number, header, body);
        let tag = sealed.ok().and_then(|tag| tag.as_ref().try_into().ok());
        tag.unwrap_or_else(|| {
            // AES-GCM and ChaCha20 fail beyond 64 GiB alone. Nothing may leave in clear then.
            body.fill(0);
            [0; TAG_LEN]
        })
    }

    fn open(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> bool {
        self.0.decrypt_in_place(number, header, body).is_ok()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// Both directions. The header keys stay unused: packet numbers are in clear (there is no header protection).
pub(crate) fn keys(keys: quic::Keys) -> Keys {
    Keys { local: Box::new(Key(keys.local.packet)), remote: Box::new(Key(keys.remote.packet)) }
}

/// The secrets from which the keys of further epochs follow.
pub(crate) struct Secrets(pub(crate) quic::Secrets);

impl Generations for Secrets {
    fn next(&mut self) -> Keys {
        let next = self.0.next_packet_keys();
        Keys { local: Box::new(Key(next.local)), remote: Box::new(Key(next.remote)) }
    }
}
