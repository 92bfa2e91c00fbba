//! The file that marks the start of a run. Only one process can create it: if it is the shim, the run begins; if it is a
//! scheduler that gives the run up, the run never will.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use evenbeat_core::ids::RunId;
use evenbeat_core::time::BootTime;
use serde::{Deserialize, Serialize};

use super::json::BootMillis;
use super::places::Places;

/// What a shim writes right before its run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartMarker {
    pub(super) boot_id: String,
    #[serde(with = "BootMillis")]
    pub(super) at: BootTime,
    /// The name of the lock that the run holds.
    pub(super) lock: String,
}

/// What the marker of a run says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkerState {
    /// The run was given up before it began, and can no longer begin.
    GivenUp,
    /// It began.
    Started(StartMarker),
    /// It began, but the marker cannot be read.
    Unreadable,
}

impl StartMarker {
    /// Creates the marker. Fails if the run was given up or has begun before.
    pub(super) fn write(&self, places: &Places, run: RunId) -> io::Result<()> {
        // Before the file is there: an empty one would say that the run was given up.
        let text = serde_json::to_string(self)?;
        let path = places.start_marker(run);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes()).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })
    }
}

/// Makes sure that a run which has not begun never will. Returns whether it had.
pub(super) fn give_up(places: &Places, run: RunId) -> io::Result<MarkerState> {
    let path = places.start_marker(run);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(_) => Ok(MarkerState::GivenUp),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(read(&std::fs::read(&path)?)),
        // Without its folder a shim cannot start the run either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(MarkerState::GivenUp),
        Err(error) => Err(error),
    }
}

fn read(text: &[u8]) -> MarkerState {
    // A scheduler that gives a run up leaves an empty marker.
    if text.is_empty() {
        return MarkerState::GivenUp;
    }
    serde_json::from_slice(text).map_or(MarkerState::Unreadable, MarkerState::Started)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const RUN: RunId = RunId(42);

    fn marker() -> StartMarker {
        StartMarker { boot_id: "one".to_owned(), at: BootTime::from_millis(5), lock: "0.lock".to_owned() }
    }

    fn with_places(name: &str, case: impl FnOnce(&Places)) {
        let root: PathBuf =
            std::env::temp_dir().join(format!("evenbeat-marker-{name}-{}", std::process::id()));
        let places = Places::open(&root).unwrap();
        std::fs::create_dir(places.run(RUN)).unwrap();
        case(&places);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_document_of_a_marker_stays_as_it_is() {
        let document = r#"{"at":5,"boot_id":"one","lock":"0.lock"}"#;
        with_places("document", |places| {
            marker().write(places, RUN).unwrap();
            let written: serde_json::Value =
                serde_json::from_slice(&std::fs::read(places.start_marker(RUN)).unwrap()).unwrap();
            assert_eq!(written, serde_json::from_str::<serde_json::Value>(document).unwrap());
            std::fs::write(places.start_marker(RUN), document.replacen('{', "{\"host\":\"a\",", 1)).unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), MarkerState::Started(marker()));
        });
    }

    #[test]
    fn a_run_that_has_begun_cannot_be_given_up() {
        with_places("begun", |places| {
            marker().write(places, RUN).unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), MarkerState::Started(marker()));
            assert_eq!(marker().write(places, RUN).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        });
    }

    #[test]
    fn a_run_that_was_given_up_cannot_begin() {
        with_places("given-up", |places| {
            assert_eq!(give_up(places, RUN).unwrap(), MarkerState::GivenUp);
            assert_eq!(give_up(places, RUN).unwrap(), MarkerState::GivenUp);
            assert_eq!(marker().write(places, RUN).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        });
    }

    #[test]
    fn a_run_without_a_folder_can_do_neither() {
        with_places("gone", |places| {
            std::fs::remove_dir(places.run(RUN)).unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), MarkerState::GivenUp);
            assert_eq!(marker().write(places, RUN).unwrap_err().kind(), io::ErrorKind::NotFound);
        });
    }

    #[test]
    fn a_marker_that_cannot_be_read_is_still_one() {
        with_places("odd", |places| {
            std::fs::write(places.start_marker(RUN), "{\"boot_id\":").unwrap();
            assert_eq!(give_up(places, RUN).unwrap(), MarkerState::Unreadable);
        });
    }
}
