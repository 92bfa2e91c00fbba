//! The note that a run has begun. Whoever makes the file first decides: the shim, and the run begins; or whoever gave
//! it up, and it never will.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use evenbeat_core::ids::RunId;
use evenbeat_core::time::BootTime;
use serde::{Deserialize, Serialize};

use super::json::{self, BootMillis};
use super::places::Places;

/// What a shim notes right before its run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Began {
    pub(super) boot_id: String,
    #[serde(with = "BootMillis")]
    pub(super) at: BootTime,
    /// The name of the lock that the run holds.
    pub(super) lock: String,
}

/// What is known of a run's beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// It was given up before it began, and cannot begin any more.
    Never,
    /// It began.
    Began(Began),
    /// It began, and the note cannot be read.
    Unreadable,
}

impl Began {
    /// Notes it; fails if the run was given up, or was begun before.
    pub(super) fn write(&self, places: &Places, run: RunId) -> io::Result<()> {
        let path = places.began(run);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(json::to_text(self).as_bytes()).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })
    }
}

/// Sees to it that a run which has not begun never will, and says whether it had.
pub(super) fn give_up(places: &Places, run: RunId) -> io::Result<Note> {
    let path = places.began(run);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(_) => Ok(Note::Never),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(read(&std::fs::read(&path)?)),
        // Without its folder a shim does not begin either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Note::Never),
        Err(error) => Err(error),
    }
}

fn read(text: &[u8]) -> Note {
    // An empty note is that of whoever gave the run up.
    if text.is_empty() {
        return Note::Never;
    }
    serde_json::from_slice(text).map_or(Note::Unreadable, Note::Began)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const RUN: RunId = RunId(42);

    fn began() -> Began {
        Began { boot_id: "one".to_owned(), at: BootTime::from_millis(5), lock: "0.lock".to_owned() }
    }

    fn with_places(name: &str, case: impl FnOnce(&Places)) {
        let root: PathBuf =
            std::env::temp_dir().join(format!("evenbeat-began-{name}-{}", std::process::id()));
        let places = Places::open(&root).unwrap();
        std::fs::create_dir(places.run(RUN)).unwrap();
        case(&places);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_note_stays_as_it_is() {
        let document = r#"{"at":5,"boot_id":"one","lock":"0.lock"}"#;
        with_places("document", |places| {
            began().write(places, RUN).unwrap();
            let written: serde_json::Value =
                serde_json::from_slice(&std::fs::read(places.began(RUN)).unwrap()).unwrap();
            assert_eq!(written, serde_json::from_str::<serde_json::Value>(document).unwrap());
            std::fs::write(places.began(RUN), document.replacen('{', "{\"host\":\"a\",", 1)).unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), Note::Began(began()));
        });
    }

    #[test]
    fn a_run_that_has_begun_cannot_be_given_up() {
        with_places("begun", |places| {
            began().write(places, RUN).unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), Note::Began(began()));
            assert_eq!(began().write(places, RUN).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        });
    }

    #[test]
    fn a_run_that_was_given_up_cannot_begin() {
        with_places("given-up", |places| {
            assert_eq!(give_up(places, RUN).unwrap(), Note::Never);
            assert_eq!(give_up(places, RUN).unwrap(), Note::Never);
            assert_eq!(began().write(places, RUN).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        });
    }

    #[test]
    fn a_run_without_a_folder_can_do_neither() {
        with_places("gone", |places| {
            std::fs::remove_dir(places.run(RUN)).unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), Note::Never);
            assert_eq!(began().write(places, RUN).unwrap_err().kind(), io::ErrorKind::NotFound);
        });
    }

    #[test]
    fn a_note_that_cannot_be_read_is_still_one() {
        with_places("odd", |places| {
            std::fs::write(places.began(RUN), "{\"boot_id\":").unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), Note::Unreadable);
        });
    }
}
