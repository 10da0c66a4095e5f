//! A program without the feature `papers`: `cargo test -p farhaul-protocols --no-default-features --test without_papers`.
#![cfg(not(feature = "papers"))]
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use farhaul_protocols::Protocol;
use farhaul_protocols::registry::PAPERS;

#[test]
fn a_protocol_of_the_papers_is_refused_with_the_feature_that_brings_it() {
    for name in PAPERS {
        for text in [(*name).to_owned(), format!("{name}:rate=5mbit")] {
            let refusal = text.parse::<Protocol>().unwrap_err().to_string();
            let expected = format!(
                "this program was built without the protocol '{name}': the feature 'papers' of the library brings it"
            );
            assert_eq!(refusal, expected);
        }
    }
}

#[test]
fn a_name_that_nobody_knows_is_refused_with_the_known_ones() {
    assert_eq!("tcp".parse::<Protocol>().unwrap_err().to_string(), "unknown protocol 'tcp': choose one of udt");
}
