use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

/// A user beside root and the one of the tests.
const SOMEBODY: u32 = 12_345;

/// A folder below the sticky one of temporary files, which is removed with its content.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("farhaul-trusted-{}-{test}", std::process::id()));
        for folder in ["", "folder", "folder/deep", "other"] {
            fs::create_dir_all(path.join(folder)).unwrap();
            set_mode(&path.join(folder), 0o755);
        }
        fs::write(path.join("folder/deep/file"), "words").unwrap();
        set_mode(&path.join("folder/deep/file"), 0o644);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("folder/deep/file")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn why(path: &Path) -> Option<String> {
    match open(path, "says whom to trust") {
        Ok(_) => None,
        Err(Distrust::Others(why)) => Some(why),
        Err(Distrust::System(error)) => panic!("{}: {error}", path.display()),
    }
}

#[test]
fn a_file_is_trusted_unless_others_may_write_it_or_a_folder_above_it() {
    let scratch = Scratch::new("modes");
    let file = scratch.file();
    assert_eq!(why(&file), None);
    for (path, mode, is_trusted) in [
        ("folder/deep/file", 0o600, true),
        ("folder/deep/file", 0o664, false),
        ("folder/deep/file", 0o646, false),
        ("folder/deep", 0o700, true),
        ("folder/deep", 0o775, false),
        ("folder", 0o757, false),
        ("folder", 0o1777, true),
    ] {
        let path = scratch.0.join(path);
        let before = fs::metadata(&path).unwrap().permissions();
        set_mode(&path, mode);
        let why = why(&file);
        assert_eq!(why.is_none(), is_trusted, "{} {mode:o}: {why:?}", path.display());
        let advice = format!("says whom to trust; run: chmod go-w {}", path.display());
        assert!(why.is_none_or(|why| why.ends_with(&advice)), "{advice}");
        fs::set_permissions(&path, before).unwrap();
    }
}

#[test]
fn a_file_or_a_folder_of_somebody_else_is_not_trusted() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root gives files away");
        return;
    }
    let scratch = Scratch::new("owners");
    for path in ["folder", "folder/deep", "folder/deep/file"] {
        chown(scratch.0.join(path), Some(SOMEBODY), None).unwrap();
        let why = why(&scratch.file()).unwrap();
        assert!(why.contains("12345") && why.contains(&format!("{path} belongs")), "{why}");
        chown(scratch.0.join(path), Some(0), None).unwrap();
    }
}

#[test]
fn a_link_is_followed_and_its_own_folder_and_owner_count() {
    let scratch = Scratch::new("links");
    let at = |name: &str| scratch.0.join(name);
    symlink("../folder/deep", at("other/relative")).unwrap();
    symlink(at("other/relative"), at("absolute")).unwrap();
    let file = at("absolute/file");
    let mut words = String::new();
    open(&file, "").unwrap().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(words, "words");
    // The folder between the two links.
    set_mode(&at("other"), 0o777);
    assert!(why(&file).unwrap().contains("other"));
    // In a sticky folder everybody may make links, and only the owner of this one counts.
    set_mode(&at("other"), 0o1777);
    assert_eq!(why(&file), None);
    if geteuid().is_root() {
        std::os::unix::fs::lchown(at("other/relative"), Some(SOMEBODY), None).unwrap();
        assert!(why(&file).unwrap().contains("relative belongs"));
    }
    symlink("loop", at("loop")).unwrap();
    assert!(matches!(open(&at("loop"), ""), Err(Distrust::System(_))));
}

#[test]
fn a_file_that_does_not_exist_is_none_wherever_its_path_ends() {
    let scratch = Scratch::new("missing");
    for path in ["no", "no/such", "folder/deep/file/below"] {
        assert!(open(&scratch.0.join(path), "").unwrap().is_none(), "{path}");
    }
    // Whoever may write to a folder is trusted with no file there, and needs none.
    set_mode(&scratch.0.join("folder"), 0o777);
    assert!(open(&scratch.0.join("folder/no"), "").unwrap().is_none());
    assert!(open(&scratch.file(), "").is_err());
    assert!(open(Path::new("/dev/null/farhaul"), "").unwrap().is_none());
    assert!(open(Path::new("/dev/null"), "").unwrap().is_some());
}

#[test]
fn a_pipe_of_the_shell_is_read_through_its_link_of_the_kernel() {
    let (reader, writer) = io::pipe().unwrap();
    drop(writer);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    assert!(open(Path::new(&path), "").unwrap().is_some());
}
