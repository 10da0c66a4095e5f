//! One QUIC stream from memory to memory, by quinn.
//!
//! ```text
//! quinn-peer serve            prints `listening ADDR`, and serves transfers until it is killed
//! quinn-peer send ADDR S      sends for S seconds, and prints bytes, time and processor time of both sides as JSON
//! ```
//!
//! Packets have 1500 bytes with their headers, as those of the other programs. Windows are larger than any product of rate and
//! delay here. Everything else is quinn's default, GSO included.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustix::time::{ClockId, clock_gettime};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// UDP payload of a packet of 1500 bytes over IPv4.
const PAYLOAD: u16 = 1472;
/// Larger than 1 Gbit/s times 200 ms.
const WINDOW: u32 = 64 << 20;
const BLOCK: usize = 256 << 10;
const NAME: &str = "peer";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve().await,
        ["send", to, seconds] => send(to.parse()?, Duration::from_secs_f64(seconds.parse()?)).await,
        _ => bail!("usage: quinn-peer serve | send ADDR SECONDS"),
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.initial_mtu(PAYLOAD).min_mtu(PAYLOAD).mtu_discovery_config(None);
    transport.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into()).send_window(WINDOW.into());
    Arc::new(transport)
}

async fn serve() -> Result<()> {
    let certified = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())?;
    tls.alpn_protocols = vec![b"bench".to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    println!("listening {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        let cpu = processor_seconds();
        let connection = incoming.await?;
        let (mut answer, mut stream) = connection.accept_bi().await?;
        let (mut bytes, mut began) = (0u64, None);
        while let Some(chunk) = stream.read_chunk(BLOCK, true).await? {
            began.get_or_insert_with(Instant::now);
            bytes += chunk.bytes.len() as u64;
        }
        let seconds = began.context("nothing came")?.elapsed().as_secs_f64();
        answer.write_all(format!("{bytes} {seconds} {}", processor_seconds() - cpu).as_bytes()).await?;
        answer.finish()?;
        connection.closed().await;
    }
    Ok(())
}

async fn send(to: SocketAddr, time: Duration) -> Result<()> {
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider())));
    let mut tls = tls.with_no_client_auth();
    tls.alpn_protocols = vec![b"bench".to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    endpoint.set_default_client_config(config);
    let cpu = processor_seconds();
    let connection = endpoint.connect(to, NAME)?.await?;
    let (mut stream, mut answer) = connection.open_bi().await?;
    let (block, began) = (vec![7; BLOCK], Instant::now());
    while began.elapsed() < time {
        stream.write_all(&block).await?;
    }
    stream.finish()?;
    let report = String::from_utf8(answer.read_to_end(1024).await?)?;
    let here = processor_seconds() - cpu;
    connection.close(VarInt::from_u32(0), b"");
    let [bytes, seconds, there] = report.split(' ').collect::<Vec<_>>()[..] else { bail!("no report: {report}") };
    println!("{{\"bytes\":{bytes},\"seconds\":{seconds},\"cpu_seconds\":{here},\"peer_cpu_seconds\":{there}}}");
    Ok(())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Processor time of all threads of this process so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Trusts any server: this is a measurement on one machine.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 alone".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
