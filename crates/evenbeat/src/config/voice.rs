//! The source of a value: the file, a variable or a flag.

use std::ops::Range;

use super::fault::Place;
use super::show::Origin;
use crate::jobfile::SourceText;

/// The precedence of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    PlainVariable,
    File,
    Variable,
    Flag,
}

/// The source that is being read.
#[derive(Clone, Copy)]
pub(super) enum Voice<'a> {
    File(&'a SourceText),
    /// A variable or a flag, and its value if that is TOML.
    Said {
        by: &'a str,
        toml: Option<&'a str>,
        rank: Rank,
    },
}

impl Voice<'_> {
    pub(super) fn place(self, span: Range<usize>) -> Place {
        match self {
            Voice::File(_) => Place::File(Some(span)),
            Voice::Said { by, toml, .. } => {
                Place::Said { by: by.to_owned(), part: toml.map(|text| (text.to_owned(), span)) }
            }
        }
    }

    pub(super) fn origin(self, span: &Range<usize>) -> Origin {
        match self {
            Voice::File(file) => {
                let before = file.text.bytes().take(span.start);
                Origin::File { line: before.filter(|it| *it == b'\n').count() + 1 }
            }
            Voice::Said { by, .. } => Origin::Said(by.to_owned()),
        }
    }

    pub(super) fn rank(self) -> Rank {
        match self {
            Voice::File(_) => Rank::File,
            Voice::Said { rank, .. } => rank,
        }
    }
}
