//! The accounts of both ends of a copy between two other hosts. The sender's word alone says nothing about the receiver's disk.

use farhaul_units::ByteSize;
use serde_json::{Value, json};

use crate::error::{Code, Error};
use crate::remote::messages::Stored;
use crate::report::Ledger;
use crate::text::plural;

/// What the sender told about verified files, one record each.
#[derive(Debug, Default)]
pub(super) struct Told {
    files: u64,
    bytes: u64,
    ledger: Ledger,
}

impl Told {
    /// Takes the record of a verified file.
    pub(super) fn verified(&mut self, record: &Value) {
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        let bytes = record["bytes"].as_u64().unwrap_or(0);
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.ledger.add(text("path"), bytes, text("digest"));
    }

    /// The fault if the last record of the sender, its records of files and what the receiver `stored` do not tell the same.
    /// `from` and `to` are the names of the hosts.
    pub(super) fn compared_with(
        &self,
        end: &Value,
        stored: Option<&Stored>,
        (from, to): (&str, &str),
    ) -> Option<Error> {
        let Some(stored) = stored else {
            let what = format!(
                "{to} did not say what it has stored; {from} says that the copy is complete, which alone proves nothing"
            );
            return Some(
                Error::new(Code::PeerLost, what).and("compare the files on both hosts, or start the copy again"),
            );
        };
        let number = |key: &str| end[key].as_u64();
        // Files that failed alone are counted on both sides.
        let broken =
            stored.failure.as_ref().map(|failed| failed.error(to)).filter(|fault| fault.code != Code::FilesFailed);
        let agree = broken.is_none()
            && number("files") == Some(stored.files)
            && number("directories") == Some(stored.directories)
            && number("bytes") == Some(stored.bytes)
            && number("failed") == Some(stored.failed)
            && end["verified"].as_bool() == Some(stored.failed == 0)
            && (self.files, self.bytes, &self.ledger) == (stored.files, stored.bytes, &stored.ledger);
        if agree {
            return None;
        }
        let amount = |files, bytes| format!("{} of {}", plural(files, "file"), ByteSize(bytes));
        let (said, has) =
            (amount(number("files").unwrap_or(0), number("bytes").unwrap_or(0)), amount(stored.files, stored.bytes));
        let what = match said == has {
            false => format!("{from} says that it sent {said}, and {to} has stored {has}"),
            true => format!("{from} and {to} tell different things about the {has} that were copied"),
        };
        let what = broken.map_or(what.clone(), |broken| format!("{what} ({broken})"));
        Some(Error::new(Code::Integrity, what).and("nothing is verified: compare the files on both hosts"))
    }
}

/// Makes the last record of the sender that of a copy that failed with `fault`. The amounts are the receiver's.
pub(super) fn correct(end: &mut Value, stored: Option<&Stored>, fault: &Error) {
    let nothing = Stored { files: 0, directories: 0, bytes: 0, failed: 0, failure: None, ledger: Ledger::default() };
    let stored = stored.unwrap_or(&nothing);
    for (key, number) in [
        ("files", stored.files),
        ("directories", stored.directories),
        ("bytes", stored.bytes),
        ("failed", stored.failed),
        ("exit_code", fault.code.exit().into()),
    ] {
        end[key] = number.into();
    }
    end["verified"] = false.into();
    end["error"] = json!({ "code": fault.code.symbol(), "message": fault.to_string() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::messages::Failed;

    const HOSTS: (&str, &str) = ("one", "two");

    fn file(path: &str, bytes: u64) -> Value {
        json!({ "event": "file", "path": path, "bytes": bytes, "digest": format!("digest of {path}"), "status": "verified" })
    }

    fn told(files: &[Value]) -> Told {
        let mut told = Told::default();
        files.iter().for_each(|file| told.verified(file));
        told
    }

    fn stored(told: &Told, failed: u64) -> Stored {
        let Told { files, bytes, ledger } = told;
        Stored { files: *files, directories: 1, bytes: *bytes, failed, failure: None, ledger: ledger.clone() }
    }

    fn end(files: u64, bytes: u64, failed: u64) -> Value {
        json!({ "files": files, "directories": 1, "bytes": bytes, "failed": failed, "verified": failed == 0 })
    }

    #[test]
    fn ends_that_tell_the_same_agree() {
        let told = told(&[file("a", 3), file("b", 4)]);
        assert_eq!(told.compared_with(&end(2, 7, 0), Some(&stored(&told, 0)), HOSTS), None);
        assert_eq!(told.compared_with(&end(2, 7, 1), Some(&stored(&told, 1)), HOSTS), None, "what failed is told, too");
    }

    #[test]
    fn a_sender_that_tells_more_or_something_else_than_the_receiver_has_stored_is_not_trusted() {
        let (honest, renamed) = (told(&[file("a", 3)]), told(&[file("b", 3)]));
        let failure = Some(Failed { code: "PEER_LOST".to_owned(), message: "the peer left".to_owned() });
        let broken = Stored { failure, ..stored(&honest, 0) };
        for (end, told, stored, words) in [
            (
                end(2, 7, 0),
                told(&[file("a", 3), file("b", 4)]),
                stored(&honest, 0),
                "sent 2 files of 7 B, and two has stored 1 file of 3 B",
            ),
            (end(1, 3, 0), told(&[]), stored(&honest, 0), "tell different things"),
            (end(1, 3, 0), told(&[file("a", 3)]), stored(&renamed, 0), "tell different things"),
            (end(1, 3, 0), told(&[file("a", 3)]), stored(&honest, 1), "tell different things"),
            (end(1, 3, 0), told(&[file("a", 3)]), broken, "(two: the peer left)"),
        ] {
            let fault = told.compared_with(&end, Some(&stored), HOSTS).unwrap();
            assert!(fault.code == Code::Integrity && fault.message.contains(words), "{fault}");
        }
        let fault = honest.compared_with(&end(1, 3, 0), None, HOSTS).unwrap();
        assert!(fault.code == Code::PeerLost && fault.message.contains("two did not say"), "{fault}");
    }

    #[test]
    fn the_record_of_a_copy_that_is_not_confirmed_has_the_amounts_of_the_receiver() {
        let (mut record, honest) = (end(2, 7, 0), told(&[file("a", 3)]));
        correct(&mut record, Some(&stored(&honest, 0)), &Error::new(Code::Integrity, "why"));
        assert_eq!((&record["files"], &record["bytes"], &record["exit_code"]), (&1.into(), &3.into(), &6.into()));
        assert_eq!((&record["verified"], &record["error"]["code"]), (&false.into(), &"INTEGRITY".into()));
    }
}
