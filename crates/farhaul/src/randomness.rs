//! Secrets from the operating system.

use farhaul_proto::Entropy;

use crate::error::Error;

/// The secrets and seeds of an endpoint.
pub(crate) fn entropy() -> Result<Entropy, Error> {
    let (cookie_key, seed) = (random()?, random()?);
    Ok(Entropy { cookie_key, seed: u64::from_ne_bytes(seed) })
}

/// The number of a measured stream or the seed of a controller, which strangers do not guess.
pub(crate) fn session() -> Result<u64, Error> {
    random().map(u64::from_ne_bytes)
}

fn random<const LEN: usize>() -> Result<[u8; LEN], Error> {
    let mut bytes = [0; LEN];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System { what: "randomness", source: std::io::Error::other(error) })?;
    Ok(bytes)
}
