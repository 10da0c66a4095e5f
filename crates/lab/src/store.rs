//! Stores records in a file, one line each, as runs finish. A stored run is never run again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::LabError;
use crate::record::Record;

/// The name of the file in a figure's folder.
pub const RECORDS: &str = "records.ndjson";

/// The records of one scenario in a folder.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    /// The records that the file had when it was opened, by key.
    found: BTreeMap<String, Record>,
}

/// The records that a folder keeps, by key. None if it keeps none. Changes nothing, so that it may be read during a run.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn stored_records(folder: &Path) -> Result<BTreeMap<String, Record>, LabError> {
    let path = folder.join(RECORDS);
    match File::open(&path) {
        Ok(file) => read(&path, &file).map(|(found, _)| found),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(source) => Err(LabError::file(&path, source)),
    }
}

/// The records of a file, and its length without a last line that was cut off.
fn read(path: &Path, file: &File) -> Result<(BTreeMap<String, Record>, u64), LabError> {
    let mut found = BTreeMap::new();
    let mut whole = 0;
    let mut reader = BufReader::new(file);
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let length = reader.read_line(&mut line).map_err(|source| LabError::file(path, source))?;
        if length == 0 || !line.ends_with('\n') {
            break;
        }
        let record: Record = serde_json::from_str(&line).map_err(|wrong| LabError::Store {
            path: path.to_owned(),
            line: number,
            message: format!("this is not a record of a run ({wrong}); remove the file to start again"),
        })?;
        found.insert(record.key.clone(), record);
        whole += length as u64;
    }
    Ok((found, whole))
}

impl Store {
    /// Opens the records in `folder` for one run at a time, which adds records. Two would write over each other's. Makes the
    /// folder if it does not exist. Removes a last line that was cut off when the program was killed.
    ///
    /// # Errors
    /// The folder or file cannot be read or written, or holds something else. Or another store of this folder was claimed and
    /// is not dropped yet.
    pub fn claim(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(RECORDS);
        let failed = |source| LabError::file(&path, source);
        std::fs::create_dir_all(folder).map_err(|source| LabError::file(folder, source))?;
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&path).map_err(failed)?;
        // A file system without locks cannot tell.
        if let Err(Errno::WOULDBLOCK) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            return Err(LabError::InUse(path));
        }
        let (found, whole) = read(&path, &file)?;
        file.set_len(whole).and_then(|()| file.seek(SeekFrom::End(0)).map(drop)).map_err(failed)?;
        Ok(Self { path, file, found })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The record of a run, if it is stored.
    pub fn get(&self, key: &str) -> Option<&Record> {
        self.found.get(key)
    }

    /// Adds a record. The system has it when this returns.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn add(&mut self, record: &Record) -> Result<(), LabError> {
        let mut line = serde_json::to_vec(record).map_err(|wrong| LabError::file(&self.path, wrong.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|source| LabError::file(&self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str) -> Record {
        Record {
            figure: "f".into(),
            curve: String::new(),
            point: BTreeMap::new(),
            seed: 1,
            world: Default::default(),
            emulation: None,
            metrics: BTreeMap::from([("jain".into(), 0.5)]),
            series: BTreeMap::new(),
            key: key.into(),
            trace: String::new(),
            simulated_seconds: 1.0,
            real_seconds: 0.5,
            packet_hops: 3,
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("farhaul-lab-{name}-{}", std::process::id()));
            drop(std::fs::remove_dir_all(&path));
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn stored_records_are_found_again() {
        let folder = Folder::new("found");
        assert_eq!(stored_records(&folder.0).unwrap(), BTreeMap::new());
        let mut store = Store::claim(&folder.0).unwrap();
        store.add(&record("a")).unwrap();
        store.add(&record("b")).unwrap();
        // While somebody else adds records.
        let found = stored_records(&folder.0).unwrap();
        assert_eq!((found.get("a"), found.get("c")), (Some(&record("a")), None));
        drop(store);
        assert_eq!(Store::claim(&folder.0).unwrap().get("b"), Some(&record("b")));
    }

    #[test]
    fn one_run_at_a_time_adds_records() {
        let folder = Folder::new("claimed");
        let first = Store::claim(&folder.0).unwrap();
        let refused = Store::claim(&folder.0).map(drop).unwrap_err().to_string();
        assert!(refused.ends_with(
            "records.ndjson: another run adds its results here: wait for its end, or choose another folder"
        ));
        drop(first);
        Store::claim(&folder.0).unwrap();
    }

    #[test]
    fn a_line_that_was_cut_off_is_forgotten() {
        let folder = Folder::new("cut");
        let mut store = Store::claim(&folder.0).unwrap();
        store.add(&record("a")).unwrap();
        store.add(&record("b")).unwrap();
        drop(store);
        let path = folder.0.join(RECORDS);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 10]).unwrap();
        let found = stored_records(&folder.0).unwrap();
        assert!(found.contains_key("a") && !found.contains_key("b"));
        assert_eq!(std::fs::read(&path).unwrap().len(), text.len() - 10, "the line may still be written");
        let mut store = Store::claim(&folder.0).unwrap();
        assert!(store.get("a").is_some() && store.get("b").is_none());
        store.add(&record("c")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
        assert!(stored_records(&folder.0).unwrap().contains_key("c"));
    }

    #[test]
    fn a_file_of_something_else_is_refused_with_its_line() {
        let folder = Folder::new("other");
        std::fs::create_dir_all(&folder.0).unwrap();
        std::fs::write(folder.0.join(RECORDS), "hello\n").unwrap();
        let message = stored_records(&folder.0).unwrap_err().to_string();
        assert!(message.contains("records.ndjson:1: ") && message.contains("remove"), "{message}");
    }
}
