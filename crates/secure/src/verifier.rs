//! The checks of a peer's key in the handshake: is it trusted, and does the peer hold its private half.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::public_key::PublicKey;
use crate::trust::Trust;

/// The peer of one handshake.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) trust: Arc<dyn Trust>,
    pub(crate) peer: SocketAddr,
    /// This side has called the peer as well, so a client must have the key of the host that was called.
    pub(crate) meets: bool,
    pub(crate) crypto: Arc<CryptoProvider>,
}

impl Verifier {
    fn check(&self, entity: &CertificateDer<'_>, admits: impl Fn(PublicKey) -> bool) -> Result<(), Error> {
        match PublicKey::from_spki(entity) {
            Some(key) if admits(key) => Ok(()),
            _ => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        entity: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(entity.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.crypto.signature_verification_algorithms)
    }
}

/// The same methods of a verifier of servers and of one of clients: keys are raw, and sign by Ed25519.
macro_rules! raw_ed25519_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            // It is not offered, so nothing of it can arrive.
            Err(Error::General("TLS 1.2 is not offered".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.check_signature(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity, |key| self.trust.admits_server(self.peer, key))?;
        Ok(ServerCertVerified::assertion())
    }

    raw_ed25519_keys!();
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity, |key| match self.meets {
            true => self.trust.admits_server(self.peer, key),
            false => self.trust.admits_client(self.peer, key),
        })?;
        Ok(ClientCertVerified::assertion())
    }

    raw_ed25519_keys!();
}
