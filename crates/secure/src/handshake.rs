//! A handshake of rustls as packet protection needs it.

use farhaul_proto::secure::{Failure, Handshake, KeyChange, Protection};
use farhaul_wire::secure::CloseCode;
use rustls::quic::{self, Connection};
use rustls::{CertificateError, CipherSuite, Error, NamedGroup};

use crate::packet_key::{Secrets, keys};

/// One side.
pub(crate) struct TlsHandshake(pub(crate) Connection);

impl Handshake for TlsHandshake {
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.read_hs(bytes).map_err(|error| failure(&error))
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        Some(match self.0.write_hs(out)? {
            quic::KeyChange::Handshake { keys: new } => KeyChange::Handshake(keys(new)),
            quic::KeyChange::OneRtt { keys: new, next } => KeyChange::Application(keys(new), Box::new(Secrets(next))),
        })
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        self.0.quic_transport_parameters()
    }

    fn is_complete(&self) -> bool {
        !self.0.is_handshaking()
    }

    fn protection(&self) -> Protection {
        let group = self.0.negotiated_key_exchange_group().map(|group| group_name(group.name()));
        let cipher = self.0.negotiated_cipher_suite().map(|suite| cipher_name(suite.suite()));
        let key = self.0.peer_certificates().and_then(|keys| keys.first());
        Protection {
            suite: format!("TLS1.3 {} {}", group.unwrap_or_default(), cipher.unwrap_or_default()),
            peer_key: key.map(|key| key.as_ref().to_vec()).unwrap_or_default(),
        }
    }
}

pub(crate) fn group_name(group: NamedGroup) -> String {
    format!("{group:?}")
}

pub(crate) fn cipher_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "AES128-GCM",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "AES256-GCM",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "CHACHA20-POLY1305",
        _ => "another cipher",
    }
}

pub(crate) fn failure(error: &Error) -> Failure {
    let code = match error {
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
        | Error::NoCertificatesPresented => CloseCode::Unauthorised,
        _ => CloseCode::Tls,
    };
    Failure { code, reason: error.to_string() }
}
