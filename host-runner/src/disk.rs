//! Files that several runs may use at once: locks, and changes that happen whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Opens a file to read and write and locks it; makes it if it is not there and `create` is set.
pub(crate) fn open_locked(path: &Path, create: bool) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)?;
        file.lock()?;
        // While the lock was waited for, the file may have been replaced: what is written to the old one is lost.
        let (ours, there) = (file.metadata()?, fs::metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
}

/// Writes a file beside `path`, then gives it that name: at no time is there half a file, not even after a power cut.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |out| {
        out.write_all(bytes)?;
        out.flush()?;
        out.get_ref().sync_all()
    })
}

/// As [`replace`], but `fill` writes, and a power cut may leave less than that.
pub(crate) fn replace_with(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    // Where a symbolic link leads, not the link, is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let result = write_new(&beside, fill).and_then(|()| {
        if let Ok(old) = fs::metadata(&path) {
            fs::set_permissions(&beside, old.permissions())?;
        }
        fs::rename(&beside, &path)
    });
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result
}

fn write_new(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    fill(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Who waits for the lock of a file that is replaced meanwhile gets the new one.
    #[test]
    fn a_file_that_was_replaced_is_opened_anew() {
        let folder = std::env::temp_dir().join(format!("wormhole-disk-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("file");
        assert!(open_locked(&path, false).is_err());
        let held = open_locked(&path, true).expect("a new file");
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || open_locked(&path, true)
        });
        replace(&path, b"new").expect("a new file in its place");
        drop(held);
        let mut text = String::new();
        waiting.join().expect("no panic").expect("a file").read_to_string(&mut text).expect("text");
        assert_eq!(text, "new");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
