//! The caps of a client's key, on what its copy stores beside the files that it sends.

use std::sync::Arc;

use farhaul_disk::{Caps, ScratchClaim};
use farhaul_keys::{Claim, Permit};
use farhaul_session::Failure;
use farhaul_udp::Clock;

/// The permit of a session, for its store.
#[derive(Debug)]
pub(super) struct StoreCaps {
    permit: Arc<Permit>,
    clock: Clock,
}

impl StoreCaps {
    pub(super) const fn new(permit: Arc<Permit>, clock: Clock) -> Self {
        Self { permit, clock }
    }
}

impl Caps for StoreCaps {
    fn charge_copy(&self, bytes: u64) -> Result<(), Failure> {
        Ok(self.permit.charge_copy(bytes, self.clock)?)
    }

    fn scratch_claim(&self) -> Box<dyn ScratchClaim> {
        Box::new(Growing { permit: Arc::clone(&self.permit), claim: Claim::default() })
    }
}

/// The claim of something that grows.
#[derive(Debug)]
struct Growing {
    permit: Arc<Permit>,
    claim: Claim,
}

impl ScratchClaim for Growing {
    fn grow(&mut self, bytes: u64) -> Result<(), Failure> {
        Ok(self.permit.claim_more(bytes, &mut self.claim)?)
    }
}

#[cfg(test)]
mod tests {
    use farhaul::security::{AuthorizedKeys, PublicKey};
    use farhaul_session::{FailCode, Store};

    use super::*;
    use farhaul_disk::{Directory, DiskStore};
    use farhaul_keys::Usages;

    #[test]
    fn scratch_files_count_against_the_bytes_of_a_key_as_long_as_they_are_there() {
        let keys = AuthorizedKeys::parse(&format!("{} bytes=1000B", PublicKey::from_bytes([7; 32]))).unwrap();
        let permit = Arc::new(Usages::default().begin(&keys.grants()[0]).unwrap());
        let caps = StoreCaps::new(Arc::clone(&permit), Clock::start());
        let directory = Directory::open(&std::env::temp_dir()).unwrap();
        let mut store = DiskStore::into_directory(directory).within_caps(Arc::new(caps));
        let [mut one, mut other] = [(); 2].map(|()| store.scratch().unwrap());
        let mut write = |offset, bytes| one.write(offset, &vec![1; bytes]).map_err(|failure| failure.code);
        assert_eq!((write(0, 300), write(300, 300), write(100, 500)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(write(600, 401), Err(FailCode::GivenUp));
        assert_eq!(other.write(0, &[1; 401]).map_err(|failure| failure.code), Err(FailCode::GivenUp));
        drop(one);
        other.write(0, &[1; 1000]).unwrap();
        drop(other);
        assert!(permit.claim(1000).is_ok());
    }
}
